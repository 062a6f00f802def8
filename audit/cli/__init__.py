"""The command line: one file a command, loaded when that command is called."""

import sys
from typing import NoReturn

from audit.cli.main import command_line
from audit.cli.supervise import supervised


def main() -> NoReturn:
    """Entry point of the command `audit`."""
    sys.exit(supervised(command_line))


__all__ = ["main"]
