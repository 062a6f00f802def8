"""Findings that a project accepts for a while: the file that `baseline` in `[tool.kernel-audit.gate]` names.

    [[accepted]]
    fingerprint = "0123456789abcdef"    # `audit gate --verbose` prints the first five lines of an entry
    check = "racecheck/race"
    variant = "fast"
    case = "q6/seed1/context=129"
    found = "race in merge at kernels/merge.cu: x[i] = 1;"
    reason = "the race is between equal values; the new merge will remove it"
    expires = 2027-01-31

Only people write this file. An entry that is expired, that expires in more than a year, or whose lines are not those of
the finding accepts nothing, and one that matches nothing is no longer true: all fail the gate.
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
from audit.gate.verdict import Condition, GateFinding
from audit.printable import one_line
from audit.project import Project


class AcceptedFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One accepted finding; it holds through its last day."""

    fingerprint: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    check: str
    variant: str
    case: str
    found: str
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]
    expires: date

    def matches(self, one: GateFinding) -> bool:
        """Whether it is about this very finding."""
        return (self.fingerprint, self.check, self.variant, self.case, self.found) == (
            *(one.fingerprint, one.rule, one.variant, one.case),
            one.found,
        )


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
            f"{file}: expected tables [[accepted]], each with fingerprint, check, variant, case, found, reason and "
            f"expires, but got: {one_line(error)}; `audit gate --verbose` prints an entry for each finding"
        ) from None
    prints = [entry.fingerprint for entry in entries]
    if twice := next((one for one in prints if prints.count(one) > 1), None):
        raise ProjectError(f"{file}: {twice} is accepted twice; keep one entry")
    return entries


def valid(entries: Sequence[AcceptedFinding], today: date) -> tuple[AcceptedFinding, ...]:
    """Every entry that is in force: not expired, and not for longer than a year."""
    return tuple(entry for entry in entries if today <= entry.expires <= _last_day(today))


def condition(
    entries: Sequence[AcceptedFinding], seen: Collection[GateFinding], today: date, path: str, *, whole: bool
) -> Condition:
    """Every entry must be in force and match one of the findings seen. An entry that matches nothing fails only where
    all evidence that the policy asks for was found (`whole`)."""
    expired = [entry for entry in entries if entry.expires < today]
    late = [entry for entry in entries if entry.expires > _last_day(today)]
    by_print = {one.fingerprint: one for one in seen}
    others = [(entry, one) for entry in entries if (one := by_print.get(entry.fingerprint)) and not entry.matches(one)]
    unmatched = [entry for entry in entries if entry.fingerprint not in by_print]
    sentences = [
        *(
            f"{entry.fingerprint} expired on {entry.expires}: fix what it accepts, or give it a new date"
            for entry in expired
        ),
        *(f"{entry.fingerprint} expires on {entry.expires}: expected at most {_last_day(today)}" for entry in late),
        *(
            f"{entry.fingerprint} is the finding {one.rule}, {one.variant}, {one.case}: {one.found}; the entry says "
            f"{entry.check}, {entry.variant}, {entry.case}: {entry.found}"
            for entry, one in others
        ),
        *(f"{entry.fingerprint} matches nothing: remove it" for entry in unmatched),
    ]
    failed = expired or late or others or (unmatched and whole)
    return Condition(
        name="baseline",
        required="every entry in force and matching a finding",
        measured=f"{len(entries)} entries, {len(expired)} expired, {len(late)} for too long, "
        f"{len(unmatched) + len(others)} matching nothing",
        verdict="fail" if failed else "inconclusive" if unmatched else "pass",
        detail="; ".join(sentences),
        path=path,
    )


def _last_day(today: date) -> date:
    """A year ahead, the same day of the month."""
    try:
        return today.replace(year=today.year + 1)
    except ValueError:  # 29 February
        return date(today.year + 1, 2, 28)
