"""Everything a user can mend, one type a kind; `audit.cli` turns them into exit code 2 in one place.

A message says what was expected, what came, where, and what to do.
"""


class AuditError(Exception):
    """Base of all errors that are the user's to mend: usage, configuration, environment."""


class ProjectError(AuditError):
    """The audited project cannot be found or loaded, or what it declares is malformed."""


class PlanError(AuditError):
    """What was asked for is not something that this project can run (unknown shape, context too long...)."""


class ToolMissing(AuditError):
    """A compiler or another program is absent; the message says what to install."""


class CompileError(AuditError):
    """A source did not compile. For an audited variant this becomes a verdict, not an end."""


class CaptureError(AuditError):
    """A capture is altered, truncated, oversized, escapes its folder, or does not fit its operator."""


class InputError(AuditError):
    """An input lies outside the domain that the operator's contract admits."""


class EvidenceError(AuditError):
    """Evidence cannot be read, is not whole, or could not be written."""
