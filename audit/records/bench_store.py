"""The evidence of a bench on disk: a folder with bench.json, report.html and SHA256SUMS.

Where it was compared with a frozen curve, curve.json is a copy of that curve: the folder tells all by itself.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from audit.bench import curve as curves
from audit.bench.curve import Curve
from audit.records import folder, packing
from audit.records.bench import SCHEMA, BenchEvidence
from audit.records.folder import REPORT

BENCH, CURVE = "bench.json", "curve.json"


class Recorded(msgspec.Struct, frozen=True):
    """A bench as it was read: its record, and the curve that it was compared with."""

    evidence: BenchEvidence
    curve: Curve | None


class Draft(folder.Partial):
    """A bench's folder while it runs."""

    def __init__(self, runs: Path, shape: str) -> None:
        super().__init__(runs, f"bench-{shape}", {})

    def finish(self, evidence: BenchEvidence, page: str, curve: Curve | None = None) -> Path:
        """Make it evidence; the folder of the whole evidence."""
        files = {BENCH: folder.encode(evidence), REPORT: page.encode()}
        return self.seal(files if curve is None else {**files, CURVE: folder.encode(curve)})


def load(path: Path) -> Recorded:
    """Read a whole bench from its folder or its bench.json; EvidenceError says what is wrong with it."""
    home = path.parent if packing.plain(path.name) == BENCH else path
    found = folder.verified(home, (BENCH, CURVE))
    folder.require(found, (BENCH,), home)
    evidence = folder.decode(found[BENCH], home / BENCH, BenchEvidence, SCHEMA)
    return Recorded(evidence, curves.decode(found[CURVE], home / CURVE) if CURVE in found else None)
