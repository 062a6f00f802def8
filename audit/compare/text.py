"""The verdict of a comparison, for people: what differs, by how much, where, and which kernel is closer to FP64."""

from __future__ import annotations

from collections.abc import Iterator

from audit.checks.difference import amount
from audit.checks.result import Verdict
from audit.compare.operator import NEW, OLD
from audit.records.run import RunRecord, findings
from audit.records.sanitize import SanitizeRecord

_SHOWN = 12


def describe_comparison(record: RunRecord, session: SanitizeRecord | None, verdict: Verdict) -> str:
    """The lines that `audit compare` prints above the paths of its record."""
    lines = [f"{verdict}: {_sentence(record)}", *_errors(record)]
    others = [one for one in findings(record) if one.result.check != "bytes"]
    for finding in others[:_SHOWN]:
        lines.append(
            f"{finding.result.verdict:12} {finding.result.check}: {finding.scope}\n{'':13}{finding.result.detail}"
        )
    notes = dict.fromkeys(note.detail for audit in record.audits for note in audit.notes)
    lines += [f"{'note':12} {detail}" for detail in list(notes)[:_SHOWN]]
    if session:
        summary = session.summary
        lines.append(
            f"{'sanitizers':12} {summary.verdict}: {summary.clean} clean, {summary.failed} with findings, "
            f"{summary.inconclusive} inconclusive; {summary.canaries_found} of {summary.canaries} canaries found"
        )
    return "\n".join(lines)


def _sentence(record: RunRecord) -> str:
    """Whether the new kernel left the bytes of the old one, over all cases."""
    cases = f"{len(record.plan.cases)} case{'s' if len(record.plan.cases) != 1 else ''}"
    results = [result for audit in record.audits if audit.variant == NEW for result in audit.results]
    compared = [result for result in results if result.check == "bytes"]
    wrong = [result for result in compared if result.verdict == "fail"]
    if wrong:
        largest = [one for result in wrong for one in result.largest]
        names = ", ".join(dict.fromkeys(one.buffer for one in largest))
        return f"{names} differs from {OLD} in {len(wrong)} of {len(compared)} steps of {cases}, {amount(largest)}"
    if compared and all(result.verdict == "pass" for result in compared):
        return f"every byte is that of {OLD}, in {len(compared)} steps of {cases}"
    return f"{NEW} was not compared with {OLD}"


def _errors(record: RunRecord) -> Iterator[str]:
    """The largest error of both kernels against FP64, buffer by buffer."""
    names = dict.fromkeys(metric.name for audit in record.audits for metric in audit.metrics)
    for name in names:
        for variant in (OLD, NEW):
            found = [
                metric
                for audit in record.audits
                if audit.variant == variant
                for metric in audit.metrics
                if metric.name == name
            ]
            if found:
                absolute = max(found, key=lambda metric: metric.max_abs.value).max_abs
                relative = max(found, key=lambda metric: metric.relative_l2.value).relative_l2
                ulps = max((metric.ulp[-1] for metric in found if metric.ulp), default=None)
                yield (
                    f"{'error':12} {name} of {variant} against FP64: at most {absolute.text}"
                    + (f", {ulps:,} ulp" if ulps is not None else "")
                    + f"; relative L2 {relative.text}"
                )
