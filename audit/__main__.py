"""`python -m audit` is the command `audit`."""

from audit.cli import main

main()
