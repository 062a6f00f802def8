"""Writes projects of small kernels, runs them with the command, and reads what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HEAD = """import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/{name}.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{{k}}" for k in range(d.ndim)))
    return Bound("exact", measure)

"""


def write_project(folder: Path, kernels: dict[str, tuple[str, str]]) -> None:
    """One shape for each name: its CUDA source and its declaration, which begins after `HEAD`."""
    (folder / "kernels").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    for name, (cuda, declaration) in kernels.items():
        (folder / f"kernels/{name}.cu").write_text(cuda)
        (folder / f"kernels/{name}.py").write_text(HEAD.format(name=name) + declaration + "\n")


def commanded(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of `audit` in the project, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "audit", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    return done.returncode, done.stdout + done.stderr


def record_of(folder: Path, shape: str) -> dict[str, Any]:
    """The newest record of a run of a shape."""
    paths = sorted((folder / "runs").glob(f"*-{shape}-*/evidence.json"))
    record: dict[str, Any] = json.loads(paths[-1].read_text())
    return record


def verdicts(folder: Path, shape: str) -> dict[str, tuple[str, str]]:
    """For each variant of a shape's newest record its verdict, and the details of what did not pass."""
    return {
        audit["variant"]: (
            audit["verdict"],
            "; ".join(f"{one['check']}: {one['detail']}" for one in audit["results"] if one["verdict"] != "pass"),
        )
        for audit in record_of(folder, shape)["audits"]
    }
