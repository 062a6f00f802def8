"""Findings of records as the gate reports them: with lines of the sources, and fingerprints that stay.

A fingerprint covers what was found, and nothing that changes when lines move or other threads take part. Of a
sanitizer's finding it covers the tool, kind, kernel and, of each side, file, function and the text of the line and its
neighbours; of a failed check its name, variant and case, the kind of its failure, the buffers and the magnitude.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from audit.checks.result import LargestDifference, Result
from audit.compile.identity import BuildIdentity, sha256_of_file
from audit.gate.verdict import GateFinding, SourceLine
from audit.plan import Backend, Plan
from audit.records.run import Audit
from audit.records.sanitize import Side, ToolCheck, ToolFinding, describe_finding

_SHORTENED = 16
_LONGEST = 200
_FOLDERS = re.compile(r"(?:/[^\s/:]+)+/")  # of an absolute path: that of a scratch folder is another each time
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


def of_audit(audit: Audit, plan: Plan, evidence: str) -> tuple[GateFinding, ...]:
    """What did not pass, one finding for each check: its steps are in one sentence."""
    source = next((variant.source for variant in plan.variants if variant.label == audit.variant), "")
    by_check: dict[str, list[Result]] = {}
    for result in audit.results:
        if result.verdict != "pass":
            by_check.setdefault(result.check, []).append(result)
    return tuple(
        GateFinding(
            rule=f"check/{check}",
            level="error" if any(result.verdict == "fail" for result in results) else "warning",
            message=f"{audit.variant}, {audit.case}: {_sentence(results)}",
            variant=audit.variant,
            case=audit.case,
            lines=(SourceLine(source),) if source else (),
            fingerprint=_digest("check", check, audit.variant, audit.case, failure(results, plan.backend)),
            evidence=evidence,
            found=failure(results, plan.backend),
        )
        for check, results in by_check.items()
    )


def failure(results: Sequence[Result], backend: Backend) -> str:
    """What a check found over all steps: the verdict, what kind of failure in which steps, and on which backend."""
    kinds: dict[str, list[str]] = {}
    for result in results:
        kinds.setdefault(f"{result.verdict}: {_kind(result)}", []).append(result.step)
    parts = []
    for kind, steps in sorted(kinds.items()):
        named = ", ".join(dict.fromkeys(step for step in steps if step))
        parts.append(f"{kind} (in {named})" if named else kind)
    return f"{'; '.join(parts)} on {backend}"


def _kind(result: Result) -> str:
    """A crash by its message, a time-out, bytes by buffer and magnitude, a bound by how far it is exceeded."""
    if result.largest:
        return " and ".join(map(_apart, result.largest))
    if result.check.startswith(("error", "probe")) and result.measured and result.limit:
        return f"outside of its limit by {_magnitude(result.measured.value, result.limit.value)}"
    first = result.detail.partition("\n")[0]
    what = first if first.startswith("crashed") else first.partition(";")[0]
    return _NUMBER.sub("#", _FOLDERS.sub("", what))[:_LONGEST]


def _apart(one: LargestDifference) -> str:
    size = "not in numbers" if one.absolute is None else f"up to {_power(one.absolute.value)}"
    ulp = "" if one.ulp is None else f" or {_power(one.ulp)} ulp"
    return f"{one.buffer} differs by {size}{ulp}{', with NaN on one side' if one.nan_on_one_side else ''}"


def _magnitude(measured: float, limit: float) -> str:
    return f"up to {_power(measured / limit)} times" if limit > 0 and math.isfinite(measured) else "no finite factor"


def _power(value: float) -> str:
    """The least power of ten that is not below a value."""
    return f"1e{math.ceil(math.log10(value))}" if 0 < value < math.inf else f"{value:g}"


def of_session(
    checked: ToolCheck, findings: Iterable[ToolFinding], builds: Mapping[str, BuildIdentity], root: Path, evidence: str
) -> tuple[GateFinding, ...]:
    """What a tool reports over one variant in one case; equal fingerprints are numbered in the order of lines."""
    build = builds.get(checked.build or "")
    seen: dict[str, int] = {}
    found = []
    for finding in sorted(findings, key=lambda one: [(side.file, side.line) for side in one.sides]):
        base = fingerprint(finding, build, root)
        seen[base] = nth = seen.get(base, 0) + 1
        sides = [side for side in finding.sides if side.file]
        code = " and ".join(f"{side.file}: {_line(side, build, root) or 'no line'}" for side in sides)
        found.append(
            GateFinding(
                rule=f"{finding.tool}/{finding.kind}",
                level=finding.severity,
                message=f"{checked.variant}, {checked.case}: {describe_finding(finding)}",
                variant=checked.variant,
                case=checked.case,
                lines=tuple(SourceLine(side.file, side.line, side.what) for side in sides)
                or ((SourceLine(build.source),) if build else ()),
                fingerprint=base if nth == 1 else _digest(base, str(nth)),
                evidence=evidence,
                found=f"{finding.kind} in {finding.kernel}{f' at {code}' if code else ''}",
            )
        )
    return tuple(found)


def fingerprint(finding: ToolFinding, build: BuildIdentity | None, root: Path) -> str:
    """Of one finding, by what does not move."""
    sides = [
        (_NUMBER.sub("#", side.what), side.function, side.file, *_around(side, build, root)) for side in finding.sides
    ]
    backend = build.backend if build else ""
    words = (word for side in sorted(sides) for word in side)
    return _digest(finding.tool, finding.kind, finding.kernel, backend, *words)


def _around(side: Side, build: BuildIdentity | None, root: Path) -> tuple[str, ...]:
    """The line of a side and its two neighbours, as they stand in the source that was built: another line of the same
    text has other neighbours. Its number where that source is not here."""
    here = _source(side, build, root)
    if not 1 <= side.line <= len(here):
        return ("", f"line {side.line}", "")
    before = next(filter(None, reversed(here[: side.line - 1])), "")
    return (before, here[side.line - 1], next(filter(None, here[side.line :]), ""))


def _line(side: Side, build: BuildIdentity | None, root: Path) -> str:
    here = _source(side, build, root)
    return here[side.line - 1] if 1 <= side.line <= len(here) else ""


def _source(side: Side, build: BuildIdentity | None, root: Path) -> tuple[str, ...]:
    """The lines of the source that was built, their spaces made one; none where another one stands here."""
    if build is None or side.file not in build.sources:
        return ()
    return _lines(root / side.file, build.sources[side.file])


@lru_cache(maxsize=256)
def _lines(file: Path, digest: str) -> tuple[str, ...]:
    if not file.is_file() or sha256_of_file(file) != digest:
        return ()
    return tuple(" ".join(line.split()) for line in file.read_text(encoding="utf-8", errors="replace").split("\n"))


def _sentence(results: list[Result]) -> str:
    first = results[0]
    steps = ", ".join(result.step for result in results if result.step)
    limit = f"; measured {first.measured.text}, limit {first.limit.text}" if first.measured and first.limit else ""
    return f"{first.detail}{f'; {first.where}' if first.where else ''}{limit}{f' (steps {steps})' if steps else ''}"


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:_SHORTENED]
