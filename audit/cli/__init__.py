"""The command line: one file a command, loaded when that command is called."""

from audit.cli.main import main

__all__ = ["main"]
