"""Backends: each executes a bundle in a child process and says how that ended."""

from audit.backends.outcome import Completed, Crashed, LaunchCount, Outcome, TimedOut

__all__ = ["Completed", "Crashed", "LaunchCount", "Outcome", "TimedOut"]
