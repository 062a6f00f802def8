"""Kernels of a cubin by name: mangled, demangled, or as launches write them, `splits<6, 256>`."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_LIMIT = 60.0  # seconds
_SHOWN = 20
_TYPES = (  # the names that sources use, and those that a demangler prints
    (r"\b__nv_bfloat16\b|\bbf16\b|\bnv_bfloat16\b", "__nv_bfloat16"),
    (r"\b__half\b|\bhalf\b", "__half"),
    (r"\buint8_t\b|\bunsigned char\b", "unsigned char"),
    (r"\bint8_t\b|\bsigned char\b", "signed char"),
    (r"\buint16_t\b|\bunsigned short\b", "unsigned short"),
    (r"\buint32_t\b|\bunsigned int\b|\bunsigned\b(?! (char|short|int|long))", "unsigned int"),
    (r"\buint64_t\b|\bsize_t\b|\bunsigned long long\b|\bunsigned long\b", "unsigned long"),
    (r"\bint16_t\b", "short"),
    (r"\bint32_t\b", "int"),
    (r"\bint64_t\b|\blong long\b", "long"),
)


class UnknownKernel(Exception):
    """No kernel, or more than one, has the name; the message lists those that are there."""


def find_kernel(entry: str, kernels: Sequence[str]) -> str:
    """The mangled name of the one kernel that `entry` means.

    It may be the mangled name, the demangled one with or without its parameters and its namespace, or a template with
    its arguments. Raises UnknownKernel.
    """
    if entry in kernels:
        return entry
    readable = demangled(tuple(kernels))
    wanted = _plain(entry)
    for form in (_plain, _without_parameters, _without_arguments):
        for end in ("", "::"):
            matches = [
                name
                for name in kernels
                if form(readable[name]) == wanted or (end and form(readable[name]).endswith(end + wanted))
            ]
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise UnknownKernel(f"{entry} means several kernels: {_listed(readable[name] for name in matches)}")
    raise UnknownKernel(f"no kernel {entry}; it has {_listed(readable.values())}")


@lru_cache(maxsize=64)
def demangled(names: tuple[str, ...]) -> dict[str, str]:
    """The names as C++ writes them, by the mangled ones; a name that no demangler here can read stays as it is."""
    library = _library()
    if library is not None:
        return {name: _by_library(library, name) for name in names}
    for program in ("cu++filt", "c++filt"):
        if shutil.which(program):
            done = subprocess.run(
                [program], input="\n".join(names), capture_output=True, text=True, check=False, timeout=_LIMIT
            )
            lines = done.stdout.splitlines()
            if done.returncode == 0 and len(lines) == len(names):
                return dict(zip(names, lines, strict=True))
    return {name: name for name in names}


def _library() -> Any:
    """The C++ library, whose demangler is part of its interface; None if it is not here."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype = ctypes.c_void_p
    except (OSError, AttributeError):
        return None
    return library


def _by_library(library: Any, name: str) -> str:
    if not name.startswith("_Z"):
        return name
    status = ctypes.c_int()
    address = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not address:
        return name
    text = ctypes.string_at(address).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(address))
    return text


def _plain(name: str) -> str:
    """Without spaces, casts and suffixes of numbers, and with one name for each type."""
    for pattern, plain in _TYPES:
        name = re.sub(pattern, plain, name)
    name = re.sub(r"\((?:unsigned |signed )?(?:bool|char|short|int|long)(?: long)?\)(?=-?\d|true|false)", "", name)
    name = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)
    name = re.sub(r"^(?:void|int|float) (?=\S)", "", name.strip())
    return re.sub(r"\s+", "", name.replace("(anonymous namespace)::", ""))


def _without_parameters(name: str) -> str:
    """Without the parameters, which are the last parenthesis outside of template arguments."""
    plain = _plain(name)
    depth = 0
    for at, letter in enumerate(plain):
        depth += (letter in "<") - (letter in ">")
        if letter == "(" and depth == 0:
            return plain[:at]
    return plain


def _without_arguments(name: str) -> str:
    """Without template arguments too."""
    return re.sub(r"<.*>$", "", _without_parameters(name))


def _listed(names: Any) -> str:
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more if every else "no kernel at all"
