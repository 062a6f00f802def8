"""Host builds: the cache, what it is keyed by, and errors that say what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from audit.compile import compiler, host
from audit.compile.cache import default_cache
from audit.compile.host import HostBuild, build_host
from audit.compile.identity import sha256
from audit.errors import CompileError, PlanError, ProjectError, ToolMissing

KERNEL = '#include "lib/value.cuh"\n__global__ void k(int* out) { out[0] = kValue + VALUE; }\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "kernels/lib").mkdir(parents=True)
    (root / "kernels/k.cu").write_text(KERNEL)
    (root / "kernels/lib/value.cuh").write_text("#pragma once\nconstexpr int kValue = 41;\n")
    return root


@pytest.fixture
def cache(tmp_path: Path, project: Path) -> Path:
    """A cache of its own, that has the runtime already."""
    build(project, default_cache())
    folder = tmp_path / "cache"
    shutil.copytree(default_cache() / "runtime", folder / "runtime")
    return folder


def build(project: Path, cache: Path, **options: object) -> HostBuild:
    options = {"entries": ["k"], "defines": {"VALUE": "1"}, **options}
    entries = options.pop("entries")
    return build_host(project, project / "kernels/k.cu", entries, cache=cache, **options)  # type: ignore[arg-type]


def answer(built: HostBuild, folder: Path) -> int:
    (folder / "o.bin").write_bytes(bytes(4))
    lines = ["kernel-audit-host 1", "report r", "buffer o o.bin 0 4", "launch 0 1 1 1 1 1 1 0 1 p:o+0", "save o s", ""]
    (folder / "script").write_text("\n".join(lines))
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    subprocess.run([built.executable, folder / "script"], check=True, env=environment)
    return int.from_bytes((folder / "s").read_bytes(), "little")


def test_a_source_that_is_refused_once_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k(float* y) { *y = absent; }\n')
    compiled = []
    compile_unit = host._compile
    monkeypatch.setattr(host, "_compile", lambda *words: compiled.append(words) or compile_unit(*words))
    messages = []
    for _ in range(3):
        with pytest.raises(CompileError, match="'absent' was not declared") as refusal:
            build_host(tmp_path, Path("k.cu"), ["k"], cache=tmp_path / "cache")
        messages.append(str(refusal.value))
    assert (len(compiled), len(set(messages))) == (1, 1)
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k(float* y) { *y = 1; }\n')
    build_host(tmp_path, Path("k.cu"), ["k"], cache=tmp_path / "cache")
    assert len(compiled) == 2


def test_a_build_runs_and_records_what_went_in(project: Path, cache: Path, tmp_path: Path) -> None:
    built = build(project, cache)
    assert answer(built, tmp_path) == 42
    identity = built.identity
    assert (identity.backend, identity.arch, identity.source, identity.entries) == (
        "host",
        "sm_90",
        "kernels/k.cu",
        ("k",),
    )
    assert identity.sources == {
        name: sha256((project / name).read_bytes()) for name in ("kernels/k.cu", "kernels/lib/value.cuh")
    }
    assert identity.binary_sha256 == sha256(built.executable.read_bytes())
    assert {"-ffp-contract=off", "-mfma", "-DVALUE=1"} <= set(identity.flags)
    assert not {"-march=native", "-ffast-math", "-Ofast"} & set(identity.flags)
    assert msgspec.json.decode(msgspec.json.encode(identity), type=type(identity)) == identity


def test_the_same_build_comes_from_the_cache(project: Path, cache: Path) -> None:
    first = build(project, cache)
    written = first.executable.stat().st_mtime_ns
    assert build(project, cache) == first
    assert first.executable.stat().st_mtime_ns == written
    assert not [path for path in (cache / "host").iterdir() if path.name.endswith(".aside")]


def test_whatever_goes_in_changes_the_key(project: Path, cache: Path, tmp_path: Path) -> None:
    keys = {build(project, cache).identity.key}
    keys.add(build(project, cache, defines={"VALUE": "2"}).identity.key)
    keys.add(build(project, cache, arch="sm_80").identity.key)
    keys.add(build(project, cache, entries=["k", "k"]).identity.key)
    (project / "kernels/lib/value.cuh").write_text("#pragma once\nconstexpr int kValue = 1;\n")
    changed = build(project, cache)
    keys.add(changed.identity.key)
    assert len(keys) == 5
    assert answer(changed, tmp_path) == 2


@pytest.mark.parametrize("sanitizer", ["thread", "address", "valgrind"])
def test_a_program_for_a_sanitizer_is_another_program(project: Path, tmp_path: Path, sanitizer: str) -> None:
    plain, made = build(project, default_cache()), build(project, default_cache(), sanitizer=sanitizer)
    assert (plain.sanitizer, made.sanitizer) == ("", sanitizer)
    assert plain.identity.key != made.identity.key
    assert f"-DSIMT_SANITIZER_{sanitizer.upper()}" in made.identity.flags
    assert not [flag for flag in plain.identity.flags if "SANITIZER" in flag or f"-fsanitize={sanitizer}" in flag]
    assert answer(made, tmp_path) == 42


@pytest.mark.parametrize(
    ("sanitizer", "needed", "package"),
    [
        ("thread", "libtsan.so", "libtsan2"),
        ("address", "libasan.so", "libasan8"),
        ("address", "sanitizer/asan_interface.h", "libasan8"),
        ("valgrind", "valgrind/memcheck.h", "valgrind"),
    ],
)
def test_a_sanitizer_that_is_not_installed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sanitizer: str, needed: str, package: str
) -> None:
    wrapper = tmp_path / "bare-compiler"  # answers as one that does not find what it is asked for
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *-print-file-name={needed}*) echo {needed};; *"-include {needed}"*) exit 1;; '
        '*) exec g++ "$@";; esac\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    with pytest.raises(ToolMissing, match=rf"needs {needed}, .*apt-get install {package}"):
        build(project, default_cache(), sanitizer=sanitizer)


def test_the_same_source_elsewhere_gives_the_same_binary(project: Path, cache: Path, tmp_path: Path) -> None:
    first = build(project, cache)
    other = Path(shutil.copytree(project, tmp_path / "other"))
    shutil.rmtree(cache / "host")
    assert build(other, cache) == first


@pytest.mark.parametrize("damage", ["program", "identity.json", "sha256"])
@pytest.mark.parametrize("removed", [False, True])
def test_a_damaged_entry_is_built_again(project: Path, cache: Path, damage: str, removed: bool) -> None:
    first = build(project, cache)
    victim = first.executable.parent / damage
    if removed:
        victim.unlink()
    else:
        content = bytearray(victim.read_bytes())
        content[len(content) // 2] ^= 1
        victim.chmod(0o755)
        victim.write_bytes(content)
    assert build(project, cache) == first
    assert sha256(first.executable.read_bytes()) == first.identity.binary_sha256


def test_two_processes_build_once(project: Path, cache: Path) -> None:
    text = (
        "import sys; from pathlib import Path; from audit.compile.host import build_host\n"
        "root, cache = map(Path, sys.argv[1:])\n"
        "built = build_host(root, root / 'kernels/k.cu', ['k'], defines={'VALUE': '1'}, cache=cache)\n"
        "print(built.executable.stat().st_ino, built.identity.binary_sha256)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", text, project, cache],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for _ in range(3)
    ]
    outputs = {process.communicate(timeout=60)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(outputs) == 1


def test_an_error_names_the_line_of_the_source(project: Path, cache: Path) -> None:
    (project / "kernels/k.cu").write_text(
        KERNEL.replace("{ out[0] = kValue", "{\n  __shared__ int x[4];\n  out[0] = kValu")
    )
    with pytest.raises(CompileError, match=r"kernels/k\.cu:4:\d+: error: 'kValu' was not declared"):
        build(project, cache)
    assert not list((cache / "host").glob("*/program"))
    assert not list((cache / "host").glob(".*.aside"))


def test_an_entry_that_is_no_kernel(project: Path, cache: Path) -> None:
    with pytest.raises(CompileError, match="'absent' was not declared"):
        build(project, cache, entries=["absent"])
    with pytest.raises(ValueError, match="at least one entry"):
        build(project, cache, entries=[])
    with pytest.raises(ValueError, match="on one line"):
        build(project, cache, entries=["k\n"])


def test_a_launch_from_a_kernel_gets_a_hint(project: Path, cache: Path) -> None:
    (project / "kernels/k.cu").write_text(KERNEL + "__global__ void run(int* p) { k<<<1, 1>>>(p); }\n")
    with pytest.raises(CompileError, match=r"k\.cu:3:.*\n(.*\n)*.*a launch `<<<...>>>` in device code"):
        build(project, cache)


@pytest.mark.parametrize(
    ("include", "error", "says"),
    [
        ("gone.cuh", CompileError, r"kernels/k\.cu:1:10: fatal error: gone\.cuh: No such file"),
        ("../gone.cuh", CompileError, r"kernels/k\.cu:1:10: fatal error: \.\./gone\.cuh: No such file"),
        ("../../gone.cuh", CompileError, r"kernels/k\.cu:1:10: fatal error: \.\./\.\./gone\.cuh: No such file"),
        ("/gone.cuh", CompileError, r"kernels/k\.cu:1:10: fatal error: /gone\.cuh: No such file"),
        ("../../secret.cuh", ProjectError, r"is outside the project's root"),
        ("/etc/hostname", ProjectError, "an absolute path"),
        ("link.cuh", ProjectError, r"is outside the project's root"),
    ],
)
def test_includes_stay_inside(project: Path, cache: Path, include: str, error: type[Exception], says: str) -> None:
    (project.parent / "secret.cuh").write_text("")
    (project / "kernels/link.cuh").symlink_to(project.parent / "secret.cuh")
    (project / "kernels/k.cu").write_text(f'#include "{include}"\n')
    with pytest.raises(error, match=says):
        build(project, cache)


def test_includes_are_found_beside_the_file_and_from_the_root(project: Path, cache: Path, tmp_path: Path) -> None:
    (project / "kernels/lib/value.cuh").write_text('#pragma once\n#include "../more.cuh"\n#include "top.cuh"\n')
    (project / "kernels/more.cuh").write_text("constexpr int kMore = 10;\n")
    (project / "top.cuh").write_text("constexpr int kValue = kMore + 20;\n")
    built = build(project, cache)
    assert answer(built, tmp_path) == 31
    assert list(built.identity.sources) == ["kernels/k.cu", "kernels/lib/value.cuh", "kernels/more.cuh", "top.cuh"]


def test_a_project_may_have_files_called_like_the_runtime(project: Path, cache: Path, tmp_path: Path) -> None:
    (project / "simt").mkdir()
    (project / "simt/device.h").write_text("constexpr int kExtra = 100;\n")
    (project / "kernels/k.cu").write_text('#include "simt/device.h"\n' + KERNEL.replace("VALUE", "kExtra"))
    assert answer(build(project, cache), tmp_path) == 141


def test_sources_outside_or_absent(project: Path, cache: Path) -> None:
    (project.parent / "k.cu").write_text(KERNEL)
    with pytest.raises(ProjectError, match="outside the project's root"):
        build_host(project, Path("../k.cu"), ["k"], cache=cache)
    with pytest.raises(ProjectError, match="no such file"):
        build_host(project, Path("kernels/other.cu"), ["k"], cache=cache)


@pytest.mark.parametrize("guard", ["#ifdef __CUDACC__", "#if 0", "#ifndef VALUE"])
@pytest.mark.parametrize(
    "include", ['"gone.cuh"', '"../../../gone.cuh"', '"/gone.cuh"', "<gone.cuh>", '"cutlass/gemm.h"']
)
def test_the_preprocessor_decides_what_is_included(
    guard: str, include: str, project: Path, cache: Path, tmp_path: Path
) -> None:
    (project / "kernels/k.cu").write_text(f"{guard}\n#include {include}\n#endif\n{KERNEL}")
    assert answer(build(project, cache), tmp_path) == 42


def test_headers_are_found_in_quotes_as_in_brackets(project: Path, cache: Path, tmp_path: Path) -> None:
    names = ["assert.h", "cuda_runtime.h", "cuda_bf16.h", "cuda.h", "cublas_v2.h", "vector", "mma.h", "float.h"]
    includes = [f'#include "{name}"\n#include <{name}>\n' for name in names if name != "vector"]
    (project / "kernels/k.cu").write_text("".join(includes) + '#include "vector"\n' + KERNEL)
    assert answer(build(project, cache), tmp_path) == 42


def test_a_file_of_the_project_hides_a_header_of_its_name(project: Path, cache: Path, tmp_path: Path) -> None:
    (project / "kernels/cuda_bf16.h").write_text("#define VALUE_2 7\n")
    (project / "kernels/k.cu").write_text('#include "cuda_bf16.h"\n' + KERNEL.replace("VALUE", "VALUE_2"))
    built = build(project, cache)
    assert answer(built, tmp_path) == 48
    assert "kernels/cuda_bf16.h" in built.identity.sources


@pytest.mark.parametrize(
    "encoded",
    [
        KERNEL.encode("utf-8-sig"),
        KERNEL.replace("\n", "\r\n").encode(),
        ("// \xe9t\xe9\n" + KERNEL).encode("latin-1"),
        ("#define TWICE(x) \\\r\n  (x)\r\n" + KERNEL.replace("VALUE", "TWICE(VALUE)")).encode("utf-8-sig"),
        ("// \u4e2d\u6587\n" + KERNEL).encode("gb2312"),
    ],
    ids=["mark", "crlf", "latin-1", "crlf in a macro", "gb2312"],
)
def test_encodings_that_nvcc_takes(encoded: bytes, project: Path, cache: Path, tmp_path: Path) -> None:
    (project / "kernels/k.cu").write_bytes(encoded)
    assert answer(build(project, cache), tmp_path) == 42


def test_an_architecture_without_a_model(project: Path, cache: Path) -> None:
    with pytest.raises(PlanError, match="sm_61"):
        build(project, cache, arch="sm_61")


def test_no_compiler(project: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ToolMissing, match=r"CXX=no-such-compiler: .*apt-get install g\+\+.*dnf install gcc-c\+\+"):
        build(project, cache)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissing, match="no C\\+\\+ compiler found"):
        build(project, cache)


def test_cxx_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "my-compiler"
    wrapper.write_text(f'#!/bin/sh\ntouch {tmp_path}/used\nexec g++ "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    found = compiler.find_compiler()
    assert found.command == (str(wrapper),)
    assert (tmp_path / "used").exists()


def test_a_cpu_without_the_baseline(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor: 0\nflags\t\t: fpu sse2 avx f16c\n")
    with pytest.raises(ToolMissing, match="this CPU lacks avx2, fma"):
        compiler.require_cpu(info)
    info.write_text("processor: 0\nflags\t\t: fpu avx2 f16c fma\n")
    compiler.require_cpu(info)
