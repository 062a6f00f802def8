"""Headers that a compiler asks for and that the project does not have: who has them, and what stands in for them.

A header of a host library, such as cublas_v2.h, says nothing to the device. Where nobody has it, an empty file stands
in, and the build's record names it. Under NVRTC, which has no C++ library, CUDA's libcu++ stands in for the standard
headers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from audit.compile.toolkit import package_headers
from audit.errors import CompileError

STUBS = "kernel_audit_stubs"
"""The folder, beside the sources, of the headers that stand in."""
MOST = 200
"""Headers that are looked for in one build."""

_MISSING = re.compile(
    r"^(?P<file>[^\n:(]*)(?:\((?P<nvrtc>\d+)\)|:(?P<gcc>\d+):\d+): (?:catastrophic error|fatal error|error): "
    r"(?:(?:cannot|could not) open source file \"(?P<quoted>[^\"]+)\"|'?(?P<bare>[^\n:']+)'?"
    r"(?: file not found|: No such file or directory))",
    re.MULTILINE,
)
_INCLUDED = re.compile(rb"#[ \t]*include[ \t]*[<\"]([\x20-\x7e]+?)[>\"]")
_CUB_PARTS = "#pragma once\n" + "".join(
    f"#include <cub/{part}.cuh>\n"
    for part in (
        *(f"block/block_{name}" for name in (
            "adjacent_difference", "discontinuity", "exchange", "histogram", "load", "radix_sort", "reduce", "scan",
            "shuffle", "store",
        )),
        "warp/warp_reduce",
        "warp/warp_scan",
    )
)  # fmt: skip
_HOST_ONLY = re.compile(
    r"(cublas|cudnn|cufft|cusparse|cusolver|cutensor|nccl|nvml|nvtx|nvToolsExt|npp|nvjpeg|nvshmem|cudaProfiler|"
    r"cuda_profiler_api|helper_|torch/|ATen/|c10/|pybind11/|Python\.h|mpi|omp|gtest|gmock|benchmark/|boost/|"
    r"opencv|Eigen/|openssl/|fmt/|spdlog/|glog/|gflags/|absl/|sys/|unistd|pthread|dirent|fcntl|curand\.h|thrust/)"
)
_GLOBAL_NAMES = {  # what a C header declares outside of std, and libcu++ under NVRTC does not
    "math.h": "cmath",
    "cmath": "cmath",
    "stdint.h": "cstdint",
    "float.h": "cfloat",
    "limits.h": "climits",
    "stdlib.h": "cstdlib",
    "string.h": "cstring",
    "stddef.h": "cstddef",
    "assert.h": "cassert",
    "time.h": "ctime",
    "inttypes.h": "cstdint",
    "cinttypes": "cstdint",
    "stdbool.h": "cstdint",
}


class MissingHeader(NamedTuple):
    """A header that a compiler did not find, and the line that asks for it."""

    name: str
    file: str
    line: int

    @property
    def for_host(self) -> bool:
        """Whether it is of a library that only host code calls."""
        return _HOST_ONLY.match(self.name) is not None


def missing_header(log: str) -> MissingHeader | None:
    """The header for whose sake a compiler gave up."""
    match = _MISSING.search(log)
    if match is None:
        return None
    return MissingHeader(match["quoted"] or match["bare"].strip(), match["file"], int(match["nvrtc"] or match["gcc"]))


def folder_of(name: str, folders: tuple[Path, ...]) -> Path | None:
    """The first of the folders that has the header."""
    return next((folder for folder in folders if (folder / name).is_file()), None)


def standard_header(name: str, cccl: Path) -> str | None:
    """What stands in for a header of the C or C++ library under NVRTC; None if libcu++ has nothing of the kind."""
    instead = _GLOBAL_NAMES.get(name, name)
    if not (cccl / "cuda/std" / instead).is_file():
        return None
    return (
        f"#pragma once\n#include <cuda/std/{instead}>\n"
        "namespace cuda { namespace std {} }\nnamespace std { using namespace ::cuda::std; }\n"
    )


def write_stub(tree: Path, name: str, text: str = "") -> None:
    """Put a header into the tree's folder of stubs. A name that would leave it is left out."""
    path = (tree / STUBS / name).resolve()
    if path.is_relative_to((tree / STUBS).resolve()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class HeaderSearch:
    """The headers of one build that the compiler did not find by itself."""

    def __init__(self, tree: Path, cccl: Path | None = None, *, host_libraries: bool = True) -> None:
        """Under NVRTC `cccl` is the folder of libcu++; nvcc has a C++ library. Without `host_libraries` an empty file
        stands in for each of their headers, wherever it is."""
        self._tree, self._cccl = tree, cccl
        self.host_libraries = host_libraries
        self._names: list[str] = []
        self._known = package_headers()
        self.folders: list[Path] = []
        self.stubs: list[str] = []

    def prepare(self) -> None:
        """Before any attempt, replace the headers that NVRTC cannot read and that a file of the tree includes.

        libcu++ stands in for the standard ones, the parts of CUB for the whole, and nothing for host libraries.
        """
        assert self._cccl is not None
        for path in [path for path in self._tree.rglob("*") if path.is_file()]:
            for name in map(bytes.decode, _INCLUDED.findall(path.read_bytes())):
                text = _CUB_PARTS if name == "cub/cub.cuh" else standard_header(name, self._cccl)
                if text is not None:
                    write_stub(self._tree, name, text)
                elif _HOST_ONLY.match(name) and not (self._tree / name).is_file():
                    self.stubs.append(name)
                    write_stub(self._tree, name)
        self.stubs = sorted(set(self.stubs))

    def provided(self, log: str) -> bool:
        """Whether the compiler gave up for a header that is there now, so that another attempt makes sense.

        Raises CompileError for a header of the project that is missing.
        """
        header = missing_header(log.replace(f"{self._tree}/", ""))
        if header is None or header.name in self._names or len(self._names) >= MOST:
            return False
        self._names.append(header.name)
        if self._cccl is not None and (text := standard_header(header.name, self._cccl)) is not None:
            write_stub(self._tree, header.name, text)
            return True
        parses = self.host_libraries or not header.for_host
        folder = folder_of(header.name, self._known) if parses else None
        if folder is not None:
            self.folders.append(folder)
            return True
        if _is_quoted(self._tree, header) and not header.for_host:
            raise CompileError(
                f'{header.file}:{header.line}: include "{header.name}": no such file beside {header.file}, in the '
                "project's folder or in those of -I in Source.flags; add the file or name its folder"
            )
        self.stubs.append(header.name)
        write_stub(self._tree, header.name)
        return True

    @property
    def is_incomplete(self) -> bool:
        """Whether a header is missing for whose sake host code may not compile."""
        return bool(self.stubs)

    def remark(self) -> str:
        """What a reader of an error should know of the headers."""
        return f"\n(no {', '.join(self.stubs)} here: an empty file stood in)" if self.stubs else ""


def _is_quoted(tree: Path, header: MissingHeader) -> bool:
    """Whether a file of the project asks for the header in quotes."""
    try:
        text = (tree / header.file).read_text(errors="replace")
        return '"' in text.splitlines()[header.line - 1]
    except (OSError, IndexError):
        return False
