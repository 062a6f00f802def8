"""Kinds of fault that a run on the CPU must find, each beside a right kernel that it must pass."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.projects import commanded, record_of, verdicts, write_project


class Kind(NamedTuple):
    """What the verdict on `bad` is, and words that its results hold; kinds/NAME.cu has it, and `good`."""

    verdict: str
    words: str
    types: str = "f32 f32"
    reference: str = "i['x'].astype('f4').astype(float)"
    launch: str = "(1,), (32,), 0"
    other: str = ""  # the launch of `bad`, where it is another one
    n: int = 32
    inputs: str = "r.integers(1, 9, c.n)"


KINDS = {
    "state_kept": Kind("fail", "repeat: "),
    "active_mask_of_a_branch": Kind("fail", "repeat: ", types="i32 i32", reference="(i['x'] > 4) * (i['x'] > 4).sum()"),
    "signed_maximum_of_an_unnamed_lane": Kind(
        "fail",
        "bytes: ",
        types="i32 i32",
        reference="np.concatenate([np.maximum(i['x'][:8], i['x'][8:16]), i['x'][8:]])",
    ),
    "float_maximum_of_an_unnamed_lane": Kind(
        "fail", "bytes: ", reference="np.concatenate([np.maximum(i['x'][:8], i['x'][8:16]), i['x'][8:]])"
    ),
    "unsigned_minimum_of_an_unnamed_lane": Kind(
        "fail",
        "repeat: ",
        types="u32 u32",
        reference="np.concatenate([np.minimum(i['x'][:8], i['x'][8:16]), i['x'][8:]])",
    ),
    "unwritten_shared_minimum": Kind("fail", "repeat: "),
    "launch_bounds_of_a_template": Kind(
        "fail",
        "(__launch_bounds__ at kernels/launch_bounds_of_a_template.cu:1), but the launch has 32; a GPU refuses it",
        other="k<16>|(1,), (32,), 0",
    ),
    "an_architectures_branch": Kind("fail", "bytes: "),
    "assembly_in_an_architectures_branch": Kind(
        "inconclusive", "not supported here: kernels/assembly_in_an_architectures_branch.cu:6:"
    ),
    "shift_by_the_width": Kind(
        "inconclusive",
        "shift_by_the_width.cu:2: a shift of a 'unsigned int' by 32",
        types="u32 u32",
        reference="1 << np.arange(32)",
    ),
    "negative_shift": Kind(
        "inconclusive", "negative_shift.cu:2: a shift of a 'int' by -", types="i32 i32", reference="i['x'] >> 1"
    ),
    "conversion_of_nan": Kind("inconclusive", "conversion_of_nan.cu:3: a conversion of", types="f32 i32"),
    "conversion_too_large": Kind("inconclusive", "('float') to 'int'", types="f32 i32"),
    "division_by_zero": Kind(
        "inconclusive",
        "division_by_zero.cu:2: a division of a 'int' by zero",
        types="i32 i32",
        reference="i['x'] // 2",
    ),
    "misaligned_4": Kind(
        "fail",
        "misaligned_4.cu:3: misaligned load: a 'const float' needs a multiple of 4, but the address is 2 bytes",
    ),
    "read_only_path": Kind("fail", "read_only_path.cu:2: __ldg reads 16 bytes of y.bin that this launch has written"),
    "grid_z": Kind(
        "fail",
        "expected grid z of 1 to 65535, but got 65536",
        launch="(32,), (1,), 0",
        other="bad|(1, 1, 65536), (1,), 0",
    ),
    "block_z": Kind("fail", "expected block z of 1 to 64, but got 65", other="bad|(1,), (1, 1, 65), 0"),
    "static_shared": Kind("fail", "raises static shared memory to 49156 bytes; the limit is 49152"),
    "dynamic_shared": Kind("fail", "the limit of sm_90 is 232448", launch="(1,), (32,), 227 * 1024"),
    "a_wait_that_ends": Kind(
        "fail", "threads 0-15 at kernels/a_wait_that_ends.cu:4 `while (flag == 0) {`; threads 16-31 exited"
    ),
    "a_look_back": Kind(
        "fail", "thread 0 at kernels/a_look_back.cu:4 `while (flags[b - 1] != 1) {`", launch="(32,), (1,), 0"
    ),
}
FOLDER = Path(__file__).parent / "kinds"
TYPES = {"f32": "np.float32", "i32": "np.int32", "u32": "np.uint32"}


def source(name: str) -> str:
    return (FOLDER / f"{name}.cu").read_text()


def declaration(name: str, cuda: str, kind: Kind) -> str:
    """The shape `name`, whose variants are `good` and `bad`."""
    types = kind.types.split()
    flags = "flags" in cuda
    arguments = '("x", "y", np.int32(c.n)' + (', "flags")' if flags else ")")
    before = 'Launch("zero", (1,), (32,), 0, ("flags",)), ' if flags else ""
    entry, _, launch = (kind.other or f"bad|{kind.launch}").partition("|")
    workspace = ', Buffer("flags", "i32", "k=32", "workspace")' if flags else ""
    defines = '{"OTHER": "1"}' if "OTHER" in cuda else "{}"
    return f"""
file = "kernels/{name}.cu"
op = Operator("{name}", axes=[Axis("n", {kind.n})],
    buffers=lambda c: [Buffer("x", "{types[0]}", "n", "in"), Buffer("y", "{types[1]}", "n", "out"){workspace}],
    inputs=lambda c, r: {{"x": np.asarray({kind.inputs}).astype({TYPES[types[0]]})}},
    references=[Reference("fp64", lambda c, i: {{"y": np.asarray({kind.reference}, float)}})], bounds=[exact("y")],
    variants=[
        Variant("good", Source(file), launches=lambda c: [{before}Launch("good", {kind.launch}, {arguments})]),
        Variant("bad", Source(file, {defines}), parent="good",
            launches=lambda c: [{before}Launch("{entry}", {launch}, {arguments})]),
    ])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds") / "project"
    write_project(folder, {name: (source(name), declaration(name, source(name), kind)) for name, kind in KINDS.items()})
    commanded(folder, "run", "--shape", "all", "--time-limit", "12")
    return folder


@pytest.mark.parametrize("name", KINDS)
def test_the_right_one_passes_and_the_wrong_one_is_found(name: str, project: Path) -> None:
    found = verdicts(project, name)
    assert found["good"] == ("pass", "")
    verdict, details = found["bad"]
    assert verdict == KINDS[name].verdict, details
    assert KINDS[name].words in details


def test_what_device_code_prints_is_in_the_record(tmp_path: Path) -> None:
    cuda = (
        "#include <stdio.h>\n__global__ void good(const float* x, float* y, int n) {\n"
        '  for (int k = 0; k < 500; ++k) if (threadIdx.x == 0) printf("line %d of %d\\n", k, n);\n'
        "  y[threadIdx.x] = x[threadIdx.x];\n}\n"
        "__global__ void bad(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x]; }\n"
    )
    write_project(tmp_path / "p", {"printing": (cuda, declaration("printing", cuda, Kind("pass", "")))})
    code, said = commanded(tmp_path / "p", "run", "--shape", "printing")
    assert code == 0, said
    audit = record_of(tmp_path / "p", "printing")["audits"][0]
    (detail,) = [one["detail"] for one in audit["results"] if "printed" in one["detail"]]
    assert "line 0 of 32" in detail
    assert "line 499 of 32" in detail
    assert "characters left out" in detail
    assert len(detail) < 2300


def test_what_a_kernel_printed_before_it_crashed_is_there_too(tmp_path: Path) -> None:
    cuda = (
        "#include <stdio.h>\n"
        "__global__ void good(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x]; }\n"
        "__global__ void bad(const float* x, float* y, int n) {\n"
        '  printf("about to fail\\n"); *(volatile float*)16 = 1;\n}\n'
    )
    write_project(tmp_path / "p", {"crashing": (cuda, declaration("crashing", cuda, Kind("fail", "")))})
    commanded(tmp_path / "p", "run", "--shape", "crashing")
    assert "it printed: about to fail" in verdicts(tmp_path / "p", "crashing")["bad"][1]


@pytest.mark.parametrize("name", ["assembly_in_an_architectures_branch", "shift_by_the_width"])
def test_what_is_not_supported_is_no_finding_of_a_sanitizer(name: str, project: Path) -> None:
    code, said = commanded(project, "sanitize", "--shape", name, "--tool", "synccheck")
    assert code == 3, said
    assert "1 clean, 0 with findings, 1 inconclusive" in said
    assert said.count("not supported here: ") == 1
