"""Findings that a project accepts for a while: the file that `baseline` in `[tool.kernel-audit.gate]` names.

    [[accepted]]
    fingerprint = "0123456789abcdef"    # every format of the gate prints it
    reason = "the race is between equal values; the new merge will remove it"
    expires = 2027-01-31

Only people write this file. An entry that is expired accepts nothing, and one that matches nothing is no longer true:
both fail the gate.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Annotated

import msgspec

from audit import foreign
from audit.errors import ProjectError
from audit.foreign import ForeignError
from audit.gate.policy import baseline_path
from audit.gate.verdict import Condition
from audit.printable import one_line
from audit.project import Project


class AcceptedFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One accepted finding; it holds through its last day."""

    fingerprint: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]
    expires: date


class _Entries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    accepted: tuple[AcceptedFinding, ...] = ()


def load_baseline(project: Project) -> tuple[AcceptedFinding, ...]:
    """The entries of the project's baseline; none where it names no file. Raises ProjectError for a malformed one."""
    name = baseline_path(project)
    if name is None:
        return ()
    file = project.root / name
    try:
        entries = msgspec.convert(foreign.read_toml(file), _Entries).accepted
    except (ForeignError, msgspec.ValidationError) as error:
        raise ProjectError(
            f"{file}: expected tables [[accepted]], each with fingerprint, reason and expires, but got: "
            f"{one_line(error)}"
        ) from None
    prints = [entry.fingerprint for entry in entries]
    if twice := next((one for one in prints if prints.count(one) > 1), None):
        raise ProjectError(f"{file}: {twice} is accepted twice; keep one entry")
    return entries


def valid(entries: Sequence[AcceptedFinding], today: date) -> dict[str, str]:
    """Fingerprint -> reason of every entry that is not expired."""
    return {entry.fingerprint: entry.reason for entry in entries if entry.expires >= today}


def condition(
    entries: Sequence[AcceptedFinding], seen: Collection[str], today: date, path: str, *, whole: bool
) -> Condition:
    """Every entry must be in force and match one of the fingerprints seen. An entry that matches nothing fails only
    where all evidence that the policy asks for was found (`whole`)."""
    expired = [entry for entry in entries if entry.expires < today]
    unmatched = [entry for entry in entries if entry.fingerprint not in seen]
    sentences = [
        *(
            f"{entry.fingerprint} expired on {entry.expires}: fix what it accepts, or give it a new date"
            for entry in expired
        ),
        *(f"{entry.fingerprint} matches nothing: remove it" for entry in unmatched),
    ]
    failed = expired or (unmatched and whole)
    return Condition(
        name="baseline",
        required="every entry in force and matching a finding",
        measured=f"{len(entries)} entries, {len(expired)} expired, {len(unmatched)} matching nothing",
        verdict="fail" if failed else "inconclusive" if unmatched else "pass",
        detail="; ".join(sentences),
        path=path,
    )
