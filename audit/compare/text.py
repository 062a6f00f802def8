"""The verdict of a comparison, for people: what differs, by how much, where, and which kernel is closer to FP64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from audit.checks.difference import amount, ulp_text
from audit.checks.relation import LESS, SAME
from audit.checks.result import Verdict
from audit.records.run import CheckFinding, RunRecord, findings
from audit.records.sanitize import SanitizeRecord
from audit.report.pair_figures import NEW, OLD, KernelError, kernel_errors

_SHOWN = 12
COMPARING = ("bytes", "relation")


def describe_comparison(record: RunRecord, session: SanitizeRecord | None, verdict: Verdict) -> str:
    """The lines that `audit compare` prints above the paths of its record."""
    lines = [
        f"{verdict}: {record.plan.operator}: {_sentence(record)}{_however(record, session)}",
        *_error_table(record),
    ]
    lines += _findings(record)
    notes = dict.fromkeys(note.detail for audit in record.audits for note in audit.notes)
    lines += [f"{'note':12} {detail}" for detail in list(notes)[:_SHOWN]]
    if session:
        summary = session.summary
        lines.append(
            f"{'sanitizers':12} {summary.verdict}: {summary.clean} clean, {summary.failed} with findings, "
            f"{summary.inconclusive} inconclusive; {summary.canaries_found} of {summary.canaries} canaries found"
        )
    return "\n".join(lines)


def _however(record: RunRecord, session: SanitizeRecord | None) -> str:
    """What failed although the bytes may be equal."""
    failed = [one for one in findings(record) if one.result.verdict == "fail"]
    named = dict.fromkeys(
        f"{one.audit.variant} fails {one.result.check}"
        for one in failed
        if one.result.check not in (*COMPARING, "completion", "identity")
    )
    if session and session.summary.verdict == "fail":
        named["the sanitizers found a fault"] = None
    return f"; {', '.join(named)}" if named else ""


def _findings(record: RunRecord) -> Iterator[str]:
    """What was found beside other bytes: each check of each kernel once, with its first case."""
    found: dict[tuple[str, str], list[CheckFinding]] = {}
    for one in findings(record):
        if one.result.check not in COMPARING:
            found.setdefault((one.result.check, one.audit.variant), []).append(one)
    for each in list(found.values())[:_SHOWN]:
        first = each[0]
        more = f" and {len(each) - 1} more" if len(each) > 1 else ""
        detail = first.result.detail.replace("\n", f"\n{'':13}")
        yield f"{first.result.verdict:12} {first.result.check}: {first.scope}{more}\n{'':13}{detail}"
    if len(found) > _SHOWN:
        yield f"{'':13}{len(found) - _SHOWN} more findings: see the report"


def _sentence(record: RunRecord) -> str:
    """Whether the new kernel left the bytes of the old one, or what the relation permits, over all cases."""
    total = len(record.plan.cases)
    cases = f"{total} case{'s' if total != 1 else ''}"
    results = [(audit.case, one) for audit in record.audits if audit.variant == NEW for one in audit.results]
    compared = [(case, result) for case, result in results if result.check in COMPARING]
    wrong = [(case, result) for case, result in compared if result.verdict == "fail"]
    if wrong:
        largest = [one for _, result in wrong for one in result.largest]
        names = " and ".join(dict.fromkeys(one.buffer for one in largest)) or "the result"
        most = max(wrong, key=lambda pair: sum(one.differing for one in pair[1].largest))[1]
        share = f"{most.detail.partition(' differ')[0]}" if " of " in most.detail.partition(" differ")[0] else ""
        in_cases = f"in {len({case for case, _ in wrong})} of {cases}"
        return ", ".join(
            filter(None, (f"{names} differs from {OLD} {in_cases}", amount(largest), share and f"{share} differ"))
        )
    if any(result.check == "identity" and result.verdict == "fail" for _, result in results):
        return f"{NEW} is {OLD}: the same machine code, launched in the same way, so nothing was compared"
    other = [(case, result) for case, result in compared if result.verdict == "pass" and result.largest]
    if compared and all(result.verdict == "pass" for _, result in compared) and other:
        largest = [one for _, result in other for one in result.largest]
        in_cases = f"in {len({case for case, _ in other})} of {cases}"
        errors = [one for _, result in other for one in result.errors]
        verdicts = [SAME if one.as_accurate else LESS for one in errors]
        words = (LESS if LESS in verdicts else SAME) if verdicts else "not the same"
        names = " and ".join(dict.fromkeys(one.buffer for one in largest))
        relation = next(variant.relation for variant in record.plan.variants if variant.name == NEW)
        return f"{names} differs from {OLD} {in_cases}, {amount(largest)}, as {relation} permits: {words}"
    if compared and all(result.verdict == "pass" for _, result in compared):
        return f"every byte is that of {OLD}, in {cases}"
    stopped = dict.fromkeys(
        audit.variant
        for audit in record.audits
        for one in audit.results
        if one.check == "completion" and one.verdict != "pass"
    )
    reason = f", because {' and '.join(stopped)} did not run to the end" if stopped else ""
    return f"{NEW} was not compared with {OLD}{reason}"


def _error_table(record: RunRecord) -> Iterator[str]:
    """The errors of both kernels against FP64, buffer by buffer, one below the other."""
    errors = kernel_errors(record)
    if not errors:
        return
    rows = [("against FP64", "largest", "in ulp", "median ulp", "relative L2"), *map(_row, errors)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield f"  {row[0]:{widths[0]}}  " + "  ".join(
            f"{word:>{width}}" for word, width in zip(row[1:], widths[1:], strict=True)
        )
    yield from _closer(errors)


def _row(error: KernelError) -> tuple[str, str, str, str, str]:
    return (
        f"{error.buffer} of {error.kernel}",
        error.absolute.text,
        _ulp(error.ulp),
        _ulp(error.median_ulp),
        error.relative_l2.text,
    )


def _ulp(distance: int | None) -> str:
    return "-" if distance is None else ulp_text(distance).removesuffix(" ulp")


def _closer(errors: Sequence[KernelError]) -> Iterator[str]:
    """Which kernel has the smaller relative L2 error, for each buffer with both."""
    for old in (error for error in errors if error.kernel == OLD):
        new = next((error for error in errors if error.kernel == NEW and error.buffer == old.buffer), None)
        if new and new.relative_l2.value != old.relative_l2.value:
            closer = NEW if new.relative_l2.value < old.relative_l2.value else OLD
            yield f"  {old.buffer}: {closer} is closer to FP64"
