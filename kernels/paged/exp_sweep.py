"""The contract's exp on every binary32 from -0 to -80: `python kernels/paged/exp_sweep.py --kernel shared`.

The text of the function is cut from the kernel's source and compiled unchanged by the system's C++ compiler, with
fused multiply-adds in hardware and no contraction. Exits 1 if a result word or the largest error differs from the
record in kernels/CONTRACT.md, and 2 if the sweep could not run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "exp_sweep.cc"
SOURCES = {
    "control": HERE.parent / "grouped" / "control.cu",
    "scalar_control": HERE.parent / "scalar" / "control.cu",
    "shared": HERE / "arithmetic.cuh",
}
FLAGS = ("-std=c++20", "-O2", "-mfma", "-ffp-contract=off", "-Wall", "-Wno-unknown-pragmas", "-pthread")
DEFINITION = re.compile(r"^[^\n/]*\bfloat contract_exp\(float x\) \{\n.*?^\}\n", re.MULTILINE | re.DOTALL)

# Measured on an H200 and on an x86-64 processor, every input: the same words.
COUNT = 1_117_782_017
FNV1A64 = "9f028841e41c5f71"
WORST_ULP = 0.9035  # to four digits
WORST_AT = float.fromhex("-0x1.196b42p+6")
FIXED_POINTS = {"at_minus_zero": 1.0, "at_plus_zero": 1.0, "at_minus_80": float.fromhex("0x1.7fd974p-116")}


class SweepError(Exception):
    """The sweep could not run: no such text in the source, no compiler, or a program that failed."""


class Sweep(msgspec.Struct, frozen=True):
    """The measurements of one run.

    `count` inputs; `fnv1a64` over their result words in ascending order of the input word (hex);
    `worst_ulp`, the largest error against a double exp in units of the result's last place, and the input
    `worst_at` where it was; `fixed_points`, the results at -0, +0 and -80.
    """

    count: int
    fnv1a64: str
    worst_ulp: float
    worst_at: float
    fixed_points: dict[str, float]


def exp_text(source: Path) -> str:
    """The definition of `contract_exp` in a kernel's source, unchanged; SweepError unless there is one."""
    found = DEFINITION.findall(source.read_text(encoding="utf-8"))
    if len(found) != 1:
        raise SweepError(f"expected one definition of contract_exp(float x) in {source}, found {len(found)}")
    return str(found[0])


def sweep(text: str, step: int = 1) -> Sweep:
    """Compile the function `text` and run it on every `step`-th word from 0x80000000 to 0xC2A00000.

    These are -0 and -80. Raises SweepError when it does not compile or run; the compiler is $CXX, or g++.
    """
    with tempfile.TemporaryDirectory(prefix="exp_sweep-") as folder:
        included, program = Path(folder, "contract_exp.inc"), Path(folder, "exp_sweep")
        included.write_text(text, encoding="utf-8")
        compiler = os.environ.get("CXX", "g++")
        build = [compiler, *FLAGS, f'-DCONTRACT_EXP="{included}"', str(PROGRAM), "-o", str(program)]
        _output(build)
        measured = json.loads(_output([str(program), str(step)]))
    return Sweep(
        count=measured["count"],
        fnv1a64=measured["fnv1a64"],
        worst_ulp=float.fromhex(measured["worst_ulp"]),
        worst_at=float.fromhex(measured["worst_at"]),
        fixed_points={name: float.fromhex(measured[name]) for name in FIXED_POINTS},
    )


def differences(measured: Sweep) -> list[str]:
    """The differences between a sweep of every input and the record; empty if there are none."""
    expected = {
        "inputs": (measured.count, COUNT),
        "FNV-1a-64": (measured.fnv1a64, FNV1A64),
        "largest error, ulp": (round(measured.worst_ulp, 4), WORST_ULP),
        "largest error at": (measured.worst_at.hex(), WORST_AT.hex()),
        "fixed points": (measured.fixed_points, FIXED_POINTS),
    }
    return [
        f"{what}: expected {record}, measured {value}" for what, (value, record) in expected.items() if value != record
    ]


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="The contract's exp on every binary32 in [-80, -0].")
    parser.add_argument(
        "--kernel", choices=sorted(SOURCES), help="sweep only the exp of this kernel (default: each in turn)"
    )
    chosen = parser.parse_args(arguments).kernel
    failed = False
    for kernel in [chosen] if chosen else sorted(SOURCES):
        try:
            measured = sweep(exp_text(SOURCES[kernel]))
        except SweepError as error:
            print(f"{kernel}: {error}", file=sys.stderr)
            return 2
        print(
            f"{kernel}: {measured.count:,} inputs, FNV-1a-64 {measured.fnv1a64}, "
            f"at most {measured.worst_ulp:.4f} ulp, at {measured.worst_at.hex()}"
        )
        for line in differences(measured):
            print(f"{kernel}: {line}")
            failed = True
    return 1 if failed else 0


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SweepError(f"could not run {command[0]}: {error}; set CXX to a C++20 compiler") from error
    if done.returncode != 0:
        raise SweepError(f"{command[0]} ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
