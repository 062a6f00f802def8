"""The errors that a user can fix, one type for each kind. `audit.cli` turns them into exit code 2 in one place.

A message says what was expected, what came, where, and what to do.
"""

import errno

SHORTAGES = frozenset(
    {
        errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EIO,
        errno.EROFS,
    }
)  # fmt: skip
"""What an operating system says where it has no more of something, or its disk fails: nothing that code is wrong in."""


class AuditError(Exception):
    """Base of all errors that a user can fix: usage, configuration, environment."""


class ProjectError(AuditError):
    """The project cannot be found or loaded, or its declaration is malformed."""


class PlanError(AuditError):
    """The project cannot run what the command asks for: an unknown shape, a context that is too long."""


class ToolMissing(AuditError):
    """A compiler or another program is missing. The message says what to install."""


class CompileError(AuditError):
    """A source did not compile. For an audited variant this becomes a verdict, and the run goes on."""


class MachineError(AuditError):
    """The machine failed, not the project: no room, no memory, a compiler that was killed or never ended."""


class CaptureError(AuditError):
    """A capture is altered, truncated or too large, leads out of its folder, or does not fit its operator."""


class InputError(AuditError):
    """An input lies outside the domain of the operator. `Operator.admit_inputs` raises it."""


class EvidenceError(AuditError):
    """A record cannot be read, is incomplete, or could not be written."""
