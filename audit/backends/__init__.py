"""Backends: each executes a bundle in a child process and returns its outcome."""

from audit.backends.outcome import Completed, Crashed, LaunchCount, Outcome, TimedOut, Unsupported

__all__ = ["Completed", "Crashed", "LaunchCount", "Outcome", "TimedOut", "Unsupported"]
