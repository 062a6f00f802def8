"""Findings of records as the gate reports them: with lines of the sources, and fingerprints that stay.

A fingerprint holds nothing that changes when lines move or other threads take part: of a sanitizer's finding the tool,
kind, kernel and, of each side, file, function and the text of the line; of a failed check its name, variant and case.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from audit.checks.result import Result
from audit.compile.identity import BuildIdentity, sha256_of_file
from audit.gate.verdict import GateFinding, Place
from audit.plan import Plan
from audit.records.run import Audit
from audit.records.sanitize import Side, ToolCheck, ToolFinding, told

_SHORTENED = 16
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
            places=(Place(source),) if source else (),
            fingerprint=_digest("check", check, audit.variant, audit.case),
            evidence=evidence,
        )
        for check, results in by_check.items()
    )


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
        found.append(
            GateFinding(
                rule=f"{finding.tool}/{finding.kind}",
                level=finding.severity,
                message=f"{checked.variant}, {checked.case}: {told(finding)}",
                variant=checked.variant,
                case=checked.case,
                places=tuple(Place(side.file, side.line, side.what) for side in sides)
                or ((Place(build.source),) if build else ()),
                fingerprint=base if nth == 1 else _digest(base, str(nth)),
                evidence=evidence,
            )
        )
    return tuple(found)


def fingerprint(finding: ToolFinding, build: BuildIdentity | None, root: Path) -> str:
    """Of one finding, by what does not move."""
    sides = [
        (_NUMBER.sub("#", side.what), side.function, side.file, _text(side, build, root)) for side in finding.sides
    ]
    return _digest(finding.tool, finding.kind, finding.kernel, *(word for side in sorted(sides) for word in side))


def _text(side: Side, build: BuildIdentity | None, root: Path) -> str:
    """The line as it stands in the source that was built, its spaces made one; empty where that is not here."""
    if build is None or side.file not in build.sources or side.line < 1:
        return ""
    lines = _lines(root / side.file, build.sources[side.file])
    return " ".join(lines[side.line - 1].split()) if side.line <= len(lines) else ""


@lru_cache(maxsize=256)
def _lines(file: Path, digest: str) -> tuple[str, ...]:
    if not file.is_file() or sha256_of_file(file) != digest:
        return ()
    return tuple(file.read_text(encoding="utf-8", errors="replace").split("\n"))


def _sentence(results: list[Result]) -> str:
    first = results[0]
    steps = ", ".join(result.step for result in results if result.step)
    limit = f"; measured {first.measured.text}, limit {first.limit.text}" if first.measured and first.limit else ""
    return f"{first.detail}{f'; {first.where}' if first.where else ''}{limit}{f' (steps {steps})' if steps else ''}"


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:_SHORTENED]
