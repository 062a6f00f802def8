"""The wheel holds `audit/` and nothing else of the repository."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_wheel_contains_the_tool_alone(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"audit", "kernel_audit-0.1.0.dist-info"}
    for needed in (
        "audit/py.typed",
        "audit/report/templates/run.html.j2",
        "audit/simt/tensor_core.cc",
        "audit/simt/include/mma.h",
        "audit/simt/include/cuda_fp16.h",
    ):
        assert needed in names
