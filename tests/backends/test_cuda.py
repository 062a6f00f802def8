"""Replaying a bundle on a device: on a GPU where there is one, and on a driver whose device is the CPU."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from audit import arena, bundle
from audit.backends import Completed, Crashed, LaunchCount, Outcome, TimedOut, cuda
from audit.backends.cuda import BOTH
from audit.backends.driver import DeviceInfo
from audit.backends.memory import ALLOCATION_BYTES, allocated_bytes
from audit.backends.outcome import Misdeclared
from audit.backends.replay import Mode
from audit.bundle import AGAIN, Bundle
from audit.compile.cuda import CubinBuild, compile_cubin
from audit.compile.identity import BuildIdentity, fnv1a64
from audit.errors import PlanError, ToolMissing
from audit.spec import Arg, Array, At, Axis, Buffer, Launch, Operator, Shape, Source, Variant

HERE = Path(__file__).parent
ENTRIES = ("scale", "increment", "reversed", "arrived", "overrun", "stray", "spin")
MODES: tuple[Mode, ...] = ("plain", "graph")
X = np.arange(1, 1001, dtype=np.float32)


def by_hand(arch: str = "sm_90", cubin: bytes = b"\x7fELF, or so it says") -> CubinBuild:
    identity = BuildIdentity("cuda", arch, "key", "k.cu", {}, ENTRIES, "none", (), "sha", fnv1a64(cubin))
    return CubinBuild(cubin, {entry: entry for entry in ENTRIES}, identity)


@pytest.fixture
def fake(fake_driver: Path, monkeypatch: pytest.MonkeyPatch) -> CubinBuild:
    """The device is what fake_driver.c makes of this CPU."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver))
    device = DeviceInfo("Fake 9000", "sm_90", "13.0", "", 8 << 30, 1, 232_448)
    monkeypatch.setattr(cuda, "require_device", lambda: device)  # test_the_device_is_described asks for it
    return by_hand()


@pytest.fixture
def unasked() -> Iterator[Callable[[], DeviceInfo]]:
    """`require_device`, remembering nothing before or after."""
    cuda.require_device.cache_clear()
    yield cuda.require_device
    cuda.require_device.cache_clear()


@pytest.fixture(scope="session")
def compiled() -> CubinBuild:
    try:
        return compile_cubin(HERE, HERE / "kernels.cu", ENTRIES, arch=cuda.require_device().arch)
    except ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(params=["fake", pytest.param("compiled", marks=pytest.mark.gpu)])
def build(request: pytest.FixtureRequest) -> CubinBuild:
    """The kernels on either device."""
    found: CubinBuild = request.getfixturevalue(request.param)
    return found


def lay(
    folder: Path,
    launches: Sequence[Launch],
    n: int = X.size,
    shift: int = 0,
    arm: bundle.Arm = bundle.FIRST,
    steps: dict[str, dict[str, Array]] = {"live": {}},  # noqa: B006
    policy: arena.Policy = "guarded",
) -> Bundle:
    """A bundle of x f32 [n] -> y f32 [n] and z u64 [5], with `launches`."""
    operator = Operator(
        "tried",
        axes=[Axis("n", n)],
        buffers=lambda _: [
            Buffer("x", "f32", "n", "in", offset=shift, behind=b"\x01\x02\x03\x04"),
            Buffer("y", "f32", "n", "out"),
            Buffer("z", "u64", "word=5", "workspace"),
        ],
        inputs=lambda _case, _rng: {},
        variants=[Variant("v", Source("k.cu"), lambda _: launches)],
    )
    case = operator.case(Shape("tried"), {})
    return bundle.write_bundle(folder, operator, operator.variants[0], case, {"x": np.resize(X, n)}, steps, arm, policy)


def launch(entry: str, *args: Arg, blocks: int = 8, threads: int = 128, shared: int = 0) -> Launch:
    return Launch(entry, (blocks,), (threads,), shared, args)


SCALE = launch("scale", "x", "y", X.size, 2.0)


def replay(folder: Path, written: Bundle, build: CubinBuild, mode: Mode = "plain", limit: float = 60) -> Outcome:
    """The outcome of one mode alone."""
    (outcome,) = cuda.run(folder, written, build, limit, (mode,))
    return outcome


def snapshot(outcome: Outcome, written: Bundle, step: str, name: str) -> arena.Snapshot:
    assert isinstance(outcome, Completed), outcome
    return arena.read_slot(outcome.files[step][name], written.slot(name))


CHANGES: dict[str, dict[str, Array]] = {"live": {"x": 3 * X}, "changed": {"x": -X}, "restore": {"x": 3 * X}}


@pytest.mark.parametrize("modes", [("plain",), ("graph",), BOTH])
@pytest.mark.parametrize("policy", ["guarded", "exact"])
def test_every_step_runs_on_fresh_poison_in_every_mode(
    build: CubinBuild, tmp_path: Path, modes: tuple[Mode, ...], policy: arena.Policy
) -> None:
    launches = [SCALE, launch("increment", "y", 500, blocks=4)]
    written = lay(tmp_path, launches, steps=CHANGES, policy=policy)
    outcomes = cuda.run(tmp_path, written, build, 60, modes)
    assert len(outcomes) == len(modes)
    for outcome in outcomes:
        assert isinstance(outcome, Completed), outcome
        assert outcome.ran_fnv == build.identity.binary_fnv
        assert outcome.launches == tuple(
            LaunchCount(step, entry, blocks, 128)
            for step in CHANGES
            for entry, blocks in (("scale", 8), ("increment", 4))
        )
        for step, given in CHANGES.items():
            y, z = (snapshot(outcome, written, step, name) for name in ("y", "z"))
            expected = given["x"] * 2
            expected[:500] += 1
            np.testing.assert_array_equal(y.data.view(np.float32), expected)
            poison = next(found.poison for found in written.steps if found.name == step)["z"]
            assert z.data.tobytes() == bytes.fromhex(poison) * 5
            assert y.broken_guards == z.broken_guards == ()
    x = arena.read_slot(tmp_path / "x.bin", written.slot("x"))
    assert (x.data.view(np.float32).tolist(), x.broken_guards) == ((3 * X).tolist(), ())


def test_the_graph_is_captured_on_the_inputs_of_the_bundle(
    fake: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not on what the plain steps left: here the last one left 3 where the bundle has 1."""
    monkeypatch.setenv("FAKE_CUDA_SEEN", str(tmp_path / "seen"))
    assert len(cuda.run(tmp_path, lay(tmp_path, [SCALE], steps=CHANGES), fake, 60, BOTH)) == 2
    assert (tmp_path / "seen").read_text() == "1"


def test_what_the_plain_launches_trampled_is_whole_before_the_graph(build: CubinBuild, tmp_path: Path) -> None:
    """`overrun` changes x[0] and the guard behind y; the graph scales an x that is as the bundle has it."""
    overrun = launch("overrun", "x", "y", X.size, blocks=1, threads=1)
    written = lay(tmp_path, [SCALE, overrun])
    for outcome in cuda.run(tmp_path, written, build, 60, BOTH):
        y = snapshot(outcome, written, "live", "y")
        assert y.data.view(np.float32)[0] == 2
        assert y.broken_guards
    x = arena.read_slot(tmp_path / "x.bin", written.slot("x"))
    assert x.data.view(np.float32)[:2].tolist() == [5.0, 2.0]


def test_a_replay_that_does_nothing_leaves_the_poison(
    fake: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain launches wrote the right values to the very same addresses before."""
    monkeypatch.setenv("FAKE_CUDA", "stale")
    written = lay(tmp_path, [SCALE])
    plain, graph = cuda.run(tmp_path, written, fake, 60, BOTH)
    np.testing.assert_array_equal(snapshot(plain, written, "live", "y").data.view(np.float32), X * 2)
    poison = bytes.fromhex(written.steps[0].poison["y"])
    assert snapshot(graph, written, "live", "y").data.tobytes() == poison * (4 * X.size // 8)


def test_a_graph_that_lacks_a_launch_says_so(fake: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA", "short")
    written = lay(tmp_path, [SCALE, launch("increment", "y", 500, blocks=4)])
    plain, graph = cuda.run(tmp_path, written, fake, 60, BOTH)
    assert isinstance(plain, Completed)
    assert isinstance(graph, Completed)
    assert [seen.entry for seen in plain.launches] == ["scale", "increment"]
    assert [seen.entry for seen in graph.launches] == ["scale"]


def test_a_crash_in_the_graph_alone_is_the_outcome(
    fake: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUDA", "forgetful")
    written = lay(tmp_path, [launch("reversed", "x", "y", X.size, blocks=1, shared=4 * X.size)])
    (outcome,) = cuda.run(tmp_path, written, fake, 60, BOTH)
    assert isinstance(outcome, Crashed)
    assert (outcome.kind, outcome.message[:12]) == ("memory", "as a graph: ")


ATTRIBUTES = [{"cluster": (2,)}, {"cluster": (2, 1, 1)}, {"cooperative": True}, {"cluster": (4,), "cooperative": True}]


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_attributes_of_a_launch_arrive(
    fake: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attributes: dict[str, Any]
) -> None:
    """In plain launches and in a graph, which is looked at once it is captured."""
    written = lay(tmp_path, [dataclasses.replace(SCALE, **attributes)])
    for outcome in cuda.run(tmp_path, written, fake, 60, BOTH):
        np.testing.assert_array_equal(snapshot(outcome, written, "live", "y").data.view(np.float32), X * 2)
    monkeypatch.setenv("FAKE_CUDA", "forgetful")
    (outcome,) = cuda.run(tmp_path, written, fake, 60, BOTH)
    assert isinstance(outcome, Crashed)
    assert outcome.kind == "launch"
    assert "of scale in the captured graph, but its node has none" in outcome.message


@pytest.mark.parametrize(
    ("attributes", "blocks"), [({"cluster": (3,)}, 8), ({"cooperative": True}, 1000)], ids=["cluster", "cooperative"]
)
def test_attributes_that_the_device_refuses(
    fake: CubinBuild, tmp_path: Path, attributes: dict[str, Any], blocks: int
) -> None:
    written = lay(tmp_path, [dataclasses.replace(SCALE, grid=(blocks,), **attributes)])
    outcome = replay(tmp_path, written, fake)
    assert isinstance(outcome, Crashed)
    assert outcome.kind == "launch"


@pytest.mark.parametrize("mode", MODES)
def test_a_store_past_the_end_and_a_changed_input_are_seen(build: CubinBuild, tmp_path: Path, mode: Mode) -> None:
    written = lay(tmp_path, [launch("overrun", "x", "y", X.size, blocks=1, threads=1)])
    outcome = replay(tmp_path, written, build, mode)
    y = snapshot(outcome, written, "live", "y")
    assert set(y.broken_guards) <= set(range(4 * X.size, 4 * X.size + 4))
    assert y.broken_guards
    x = arena.read_slot(tmp_path / "x.bin", written.slot("x"))
    assert x.data.view(np.float32)[:2].tolist() == [5.0, 2.0]


@pytest.mark.parametrize("arm", [bundle.FIRST, AGAIN])
def test_arguments_and_alignment_arrive(build: CubinBuild, tmp_path: Path, arm: bundle.Arm) -> None:
    args = (At("x", 3), -7, np.uint32(4_000_000_000), np.int64(-(2**40)), np.float64(np.pi))
    written = lay(tmp_path, [launch("arrived", "z", *args, blocks=1, threads=1)], shift=6, arm=arm)
    z = snapshot(replay(tmp_path, written, build), written, "live", "z").data.view(np.uint64)
    pi = int(np.array(np.pi).view(np.uint64))
    assert z.tolist() == [6 + 12, 2**64 - 7, 4_000_000_000, 2**64 - 2**40, pi]


@pytest.mark.parametrize("mode", MODES)
def test_more_shared_memory_than_every_kernel_may_have(build: CubinBuild, tmp_path: Path, mode: Mode) -> None:
    n = 16 * 1024
    written = lay(tmp_path, [launch("reversed", "x", "y", n, blocks=1, shared=4 * n)], n=n)
    y = snapshot(replay(tmp_path, written, build, mode), written, "live", "y")
    np.testing.assert_array_equal(y.data.view(np.float32), np.resize(X, n)[::-1])


MISFITS = [
    (launch("scale", "x", "y", 3), "kernel scale: expected 4 arguments, but the launch has 3"),
    (launch("scale", "x", "y", np.int64(3), 2.0), "argument 3: expected 4 bytes, but got i64 of 8 bytes"),
    (launch("scale", "x", 5, 3, 2.0), "argument 2: expected 8 bytes, but got i32 of 4 bytes"),
    (launch("scale", At("x", X.size + 1), "y", 3, 2.0), r"x\+4004 is past the 4000 bytes of its buffer"),
    (launch("arrived", "z", "x", 300, np.uint32(1), np.int64(1), np.float64(1)), "argument 3: expected 1 bytes"),
    (launch("scale", "x", "y", 3, 2.0, shared=300_000), "300000 bytes of dynamic shared memory, more than"),
    (launch("scale", "x", "y", 3, 2.0, threads=2048), "cuLaunchKernel: CUDA_ERROR_"),
]


@pytest.mark.parametrize(
    ("mode", "wrong", "message"),
    [*(("plain", wrong, message) for wrong, message in MISFITS), ("graph", *MISFITS[-1])],
)
def test_a_launch_that_does_not_fit_its_kernel(
    build: CubinBuild, tmp_path: Path, mode: Mode, wrong: Launch, message: str
) -> None:
    outcome = replay(tmp_path, lay(tmp_path, [SCALE, wrong]), build, mode)
    if re.search("arguments, but|expected . bytes", message):  # the declaration's, not the kernel's
        assert isinstance(outcome, Misdeclared)
    else:
        assert isinstance(outcome, Crashed)
        assert outcome.kind == "launch"
    assert re.search(message, outcome.message), outcome.message


@pytest.mark.parametrize("mode", MODES)
def test_a_stray_access_is_a_crash_with_cudas_words(build: CubinBuild, tmp_path: Path, mode: Mode) -> None:
    written = lay(tmp_path, [SCALE, launch("stray", "y", blocks=1, threads=1)])
    outcome = replay(tmp_path, written, build, mode)
    assert isinstance(outcome, Crashed)
    assert outcome.kind == "memory"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered" in outcome.message


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("element", [2048, 100_000, (ALLOCATION_BYTES - 4096) // 4 - 1])
def test_a_write_behind_the_file_is_a_crash(build: CubinBuild, tmp_path: Path, mode: Mode, element: int) -> None:
    """From the first byte behind the file to the last of the allocation."""
    written = lay(tmp_path, [SCALE, launch("overrun", "x", "y", element, blocks=1, threads=1)])
    slot = written.slot("y")
    assert slot.offset + 4 * 2048 == slot.file_size
    outcome = replay(tmp_path, written, build, mode)
    assert isinstance(outcome, Crashed)
    assert outcome.kind == "memory"
    assert re.search(
        rf"[34] bytes behind y \(4000 bytes\) were written, the first {4 * element - 4000} bytes past the end",
        outcome.message,
    )


@pytest.mark.usefixtures("fake")
def test_a_bundle_leaves_nothing_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device has 8 MiB, a bundle takes more than half of it, and one process replays all of them."""
    monkeypatch.setenv("FAKE_CUDA", "small")
    for n in range(3):
        folder = tmp_path / str(n)
        folder.mkdir()
        written = lay(folder, [SCALE], n=70_000)
        assert 2**22 < sum(map(allocated_bytes, written.slots)) < 2**23
        outcomes = cuda.run(folder, written, by_hand(), 60, BOTH)
        assert [type(outcome) for outcome in outcomes] == [Completed, Completed]
        assert len(cuda._workers()._idle) == 1
    cuda.release()
    assert cuda._workers()._idle == []


@pytest.mark.parametrize("mode", MODES)
def test_a_kernel_without_end_is_killed(build: CubinBuild, tmp_path: Path, mode: Mode) -> None:
    written = lay(tmp_path, [SCALE, launch("spin", "y", blocks=1, threads=1)])
    limit = 3.0 if build.identity.compiler == "none" else 20.0
    outcome = replay(tmp_path, written, build, mode, limit)
    assert outcome == TimedOut(limit, "launch 0 scale 8 128" if mode == "plain" else "step live, as a graph")
    after = tmp_path / "after"
    after.mkdir()
    assert isinstance(replay(after, lay(after, [SCALE]), build, mode), Completed)


def test_a_hole_stays_a_hole(build: CubinBuild, tmp_path: Path) -> None:
    """x is 64 MiB of which one element is not zero; its file takes no more disk afterwards than before."""
    n = 1 << 24
    written = lay(tmp_path, [launch("scale", At("x", n - 1), "y", 1, 2.0, blocks=1)], n=n)
    file = tmp_path / "x.bin"
    slot = written.slot("x")
    before = file.read_bytes()
    with file.open("wb") as sparse:
        sparse.write(before[: slot.offset])
        sparse.seek(slot.offset + slot.size - 4)
        sparse.write(np.float32(21).tobytes() + before[slot.offset + slot.size :])
    disk = file.stat().st_blocks
    outcome = replay(tmp_path, written, build)
    assert snapshot(outcome, written, "live", "y").data[:4].view(np.float32)[0] == 42
    x = arena.read_slot(file, slot)
    assert x.broken_guards == ()
    assert x.data.view(np.float32).sum() == 21
    assert file.stat().st_blocks <= disk + 4096


@pytest.mark.parametrize(("graph", "edges"), [("fork", 2), ("shortcut", 3)])
def test_a_graph_that_is_no_chain_is_not_believed(
    fake: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: str, edges: int
) -> None:
    monkeypatch.setenv("FAKE_CUDA", graph)
    outcome = replay(tmp_path, lay(tmp_path, [SCALE, SCALE, SCALE]), fake, "graph")
    assert isinstance(outcome, Crashed)
    assert outcome.message == (
        f"as a graph: expected the captured graph to be a chain of launches, but got 3 nodes, {edges} edges"
    )


def test_a_graph_of_functions_of_another_module_is_not_believed(
    fake: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUDA", "foreign")
    outcome = replay(tmp_path, lay(tmp_path, [SCALE]), fake, "graph")
    assert isinstance(outcome, Crashed)
    assert outcome.message == (
        "as a graph: expected 'scale' in the captured graph to be of the loaded cubin, but it is not"
    )


def test_code_for_another_device_is_refused(fake: CubinBuild, tmp_path: Path) -> None:
    assert fake.identity.arch == cuda.require_device().arch == "sm_90"
    with pytest.raises(PlanError, match=r"sm_80 code, which Fake 9000 \(sm_90\) cannot run"):
        cuda.run(tmp_path, lay(tmp_path, [SCALE]), by_hand("sm_80"), 60)


@pytest.mark.usefixtures("unasked")
def test_no_device_is_told_before_anything_runs(
    fake_driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver))
    monkeypatch.setenv("FAKE_CUDA", "none")
    written = lay(tmp_path, [SCALE])
    with pytest.raises(ToolMissing, match=r"sees no usable device: cuInit: CUDA_ERROR_NO_DEVICE.*; install NVIDIA's"):
        cuda.run(tmp_path, written, by_hand(), 60)
    assert not (tmp_path / "cuda.report").exists()


def test_too_little_memory_is_told_with_the_figures(
    fake: CubinBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUDA", "small")
    written = lay(tmp_path, [SCALE], n=1 << 20)
    with pytest.raises(PlanError, match=r"case tried/.*: the bundle needs 14,680,064 bytes.*; 8,388,608 of 8,388,608"):
        cuda.run(tmp_path, written, fake, 60)
    tiny = DeviceInfo("Tiny", "sm_90", "13.0", "580", 2 << 20, 1, 1)
    with pytest.raises(PlanError, match=r"needs 551,550,976 bytes on the device.* 536,870,912 of .*has 2,097,152;"):
        cuda.refuse(written, fake, tiny)


def test_a_replay_takes_whole_pages_once_for_all_modes(tmp_path: Path) -> None:
    """x and y are a page and a bit with their guards, z is a few bytes; the driver takes 512 MiB."""
    n = (1 << 21) // 4
    written = lay(tmp_path, [launch("scale", "x", "y", n, 2.0)], n=n)
    assert cuda.needed_bytes(written) == (2 + 2 + 1) * 2**21 + 512 * 2**20


@pytest.mark.parametrize(
    ("code", "device", "runs"),
    [
        ("sm_90", "sm_90", True),
        ("sm_80", "sm_86", True),
        ("sm_86", "sm_80", False),
        ("sm_80", "sm_90", False),
        ("sm_90a", "sm_90", True),
        ("sm_100a", "sm_103", False),
        ("sm_100f", "sm_103", True),
        ("sm_100", "sm_120", False),
        ("sm_10", "sm_100", False),
    ],
)
def test_which_code_runs_where(tmp_path: Path, code: str, device: str, runs: bool) -> None:
    written = lay(tmp_path, [SCALE])
    info = DeviceInfo("Some GPU", device, "13.0", "580", 8 << 30, 1, 1)
    if runs:
        cuda.refuse(written, by_hand(code), info)
    else:
        with pytest.raises(PlanError, match=rf"{code} code, which Some GPU \({device}\) cannot run; build it for"):
            cuda.refuse(written, by_hand(code), info)


def test_a_cubin_that_does_not_load(fake: CubinBuild, tmp_path: Path) -> None:
    assert fake.cubin.startswith(b"\x7fELF")
    written = lay(tmp_path, [SCALE])
    with pytest.raises(PlanError, match="cuModuleLoadData"):
        cuda.run(tmp_path, written, by_hand(cubin=b"no ELF"), 60)


def test_the_device_is_described(
    fake_driver: Path, monkeypatch: pytest.MonkeyPatch, unasked: Callable[[], DeviceInfo]
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver))
    found = unasked()
    assert msgspec.structs.replace(found, driver="") == DeviceInfo(
        "Fake 9000", "sm_90", "13.0", "", 8 << 30, 1, 232_448
    )


def test_without_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unasked: Callable[[], DeviceInfo]) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    (tmp_path / "libcuda.so.1").write_bytes(b"not a library")
    with pytest.raises(
        ToolMissing, match=r"--device cuda: no CUDA driver: .*libcuda\.so\.1.*; install NVIDIA's driver"
    ):
        unasked()


def test_usage() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "audit.backends.replay", "x"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
