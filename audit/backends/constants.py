"""The variables of a cubin that launches do not pass: each is filled from a buffer before every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import byref, c_size_t, c_uint64

from audit.backends.driver import Driver
from audit.backends.launches import ArgumentError, Buffers, Kernel
from audit.compile.elf import is_elf, read_elf
from audit.compile.symbols import demangled


class Variables:
    """The `__constant__` and `__device__` variables of a loaded cubin that buffers of the same names fill."""

    def __init__(
        self, driver: Driver, cubin: bytes, kernels: Mapping[str, Kernel], buffers: Buffers, names: Sequence[str]
    ) -> None:
        """Raises ArgumentError for a variable that the cubin does not have, or of another size than its buffer."""
        self._driver = driver
        self._copies: list[tuple[int, int, int]] = []  # target, source, bytes
        if not names:
            return
        module = next(iter(kernels.values())).module
        for name in names:
            address, size = c_uint64(), c_size_t()
            symbol = variable_symbol(cubin, name)
            driver.call("cuModuleGetGlobal_v2", byref(address), byref(size), module, symbol.encode())
            if size.value != buffers.size(name):
                raise ArgumentError(
                    f"constant {name}: the variable has {size.value} bytes, but the buffer has {buffers.size(name)}"
                )
            self._copies.append((address.value, buffers.address(name), size.value))

    def fill(self) -> None:
        """Copy every buffer into its variable."""
        for target, source, size in self._copies:
            self._driver.call("cuMemcpyDtoD_v2", target, source, size)


def variable_symbol(cubin: bytes, name: str) -> str:
    """The mangled name of the one variable of a cubin that `name` means, with or without its namespace.

    Raises ArgumentError for none or several.
    """
    listed: tuple[str, ...] = ()
    if is_elf(cubin):
        listed = tuple(
            one.name for one in read_elf(cubin).symbols if one.section and one.size and not one.is_function and one.name
        )
    readable = demangled(listed)
    plain = {symbol: text.replace("(anonymous namespace)::", "") for symbol, text in readable.items()}
    found = [symbol for symbol, text in plain.items() if text == name]
    found = found or [symbol for symbol, text in plain.items() if text.endswith(f"::{name}")]
    if len(found) != 1:
        which = ", ".join(sorted(plain.values())[:20]) or "none"
        what = "several variables have that name" if found else "the code has no variable of that name"
        raise ArgumentError(f"constant {name}: {what}; its variables: {which}")
    return found[0]
