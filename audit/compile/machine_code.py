"""What tells the machine code of one entry from another's, whatever their names and their files are.

A digest covers the entry's instructions and constants and all that they refer to, as a graph: a section by its bytes, a
reference by the number of the section that it leads to, in the order of discovery. So no name of a kernel, of a helper
or of a file is part of it; only a function that another file defines goes by its name. Two digests may differ for code
that does the same. Equal digests mean equal code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

from audit.compile.elf import CUDA_MACHINE, ElfFile, ElfRelocation, ElfSection, ElfSymbol, read_elf

_HOST_TABLE = "_ZN4simt7kernelsE"
_FIRST_FIELD = 8  # bytes of a kernel's name in that table
_PC_RELATIVE = (2, 4)  # R_X86_64_PC32 and PLT32, whose addends count from the end of the field
_FIELD = 4


def cubin_digests(cubin: bytes, symbols: Mapping[str, str]) -> dict[str, str]:
    """entry -> digest of what it runs, from a cubin. `symbols` maps entries to names in the cubin."""
    file = read_elf(cubin)
    if file.machine != CUDA_MACHINE:
        raise ValueError(f"expected a cubin, but got an ELF file for machine {file.machine}")
    shared = [section for section in file.sections if _is_shared_constant(section)]
    digests = {}
    for entry, symbol in symbols.items():
        own = [file.section_named(f"{kind}.{symbol}") for kind in (".text", ".nv.constant2", ".nv.shared", ".nv.local")]
        if not own[0]:
            continue
        graph = _Graph(file, ())
        graph.add_globals(shared)
        for section in own:
            graph.visit(section)
        digests[entry] = graph.digest()
    return digests


def program_digests(kernel_object: bytes, entries: Sequence[str], sources: Collection[str]) -> dict[str, str]:
    """entry -> digest of what it runs, from the object file of a host build, before it is linked.

    `entries` are in the order of the object's table of kernels. `sources` are the names of the project's files, which
    do not count where the code holds them, as for messages.
    """
    file = read_elf(kernel_object)
    table = file.symbol_named(_HOST_TABLE)
    if table is None or not entries or table.size % len(entries):
        return {}
    size = table.size // len(entries)
    digests = {}
    for index, entry in enumerate(entries):
        start = table.value + index * size
        graph = _Graph(file, sources)
        for relocation in file.sections[table.section].relocations:
            if start + _FIRST_FIELD <= relocation.offset < start + size:
                graph.follow(relocation, relocation.offset - start)
        section = file.sections[table.section]
        graph.add(section.content[start + _FIRST_FIELD : start + size] if section.content else b"")
        digests[entry] = graph.digest()
    return digests


class _Graph:
    """The sections that an entry reaches, hashed in the order of their discovery."""

    def __init__(self, file: ElfFile, sources: Collection[str]) -> None:
        self._file = file
        self._sources = {source.encode() for source in sources}
        self._hash = hashlib.sha256()
        self._numbers: dict[int, int] = {}
        self._pending: list[int] = []

    def add(self, *parts: object) -> None:
        """Let bytes and numbers count."""
        for part in parts:
            content = part if isinstance(part, bytes) else str(part).encode()
            self._hash.update(b"%d:" % len(content) + content)

    def visit(self, section: int) -> None:
        """Let a section count, and all that it refers to."""
        self.add("section", self._number(section) if section else -1)
        while self._pending:
            self._add_section(self._file.sections[self._pending.pop(0)])

    def follow(self, relocation: ElfRelocation, offset: int) -> None:
        """Let a reference count, and what it leads to."""
        self._add_reference(relocation, offset)
        while self._pending:
            self._add_section(self._file.sections[self._pending.pop(0)])

    def add_globals(self, sections: Sequence[ElfSection]) -> None:
        """Let the constants that all kernels of a cubin share count."""
        for section in sections:
            self.add("globals", section.content)
            for relocation in section.relocations:
                target = self._file.symbols[relocation.symbol]
                self.add(relocation.offset, relocation.kind, relocation.addend, _without_name(target))

    def digest(self) -> str:
        """The digest of all that counted."""
        return self._hash.hexdigest()

    def _number(self, section: int) -> int:
        if section not in self._numbers:
            self._numbers[section] = len(self._numbers)
            self._pending.append(section)
        return self._numbers[section]

    def _add_section(self, section: ElfSection) -> None:
        self.add(section.size, section.content)
        for relocation in sorted(section.relocations, key=lambda one: one.offset):
            self._add_reference(relocation, relocation.offset)

    def _add_reference(self, relocation: ElfRelocation, offset: int) -> None:
        target = self._file.symbols[relocation.symbol]
        self.add(offset, relocation.kind)
        if not target.section:
            self.add("undefined", target.name, relocation.addend)
            return
        section = self._file.sections[target.section]
        if section.is_strings:
            at = target.value + relocation.addend + (_FIELD if relocation.kind in _PC_RELATIVE else 0)
            text = section.content[at : section.content.find(b"\0", at)]
            self.add("text", b"" if text in self._sources else text)
            return
        self.add(relocation.addend, target.value, self._number(target.section))


def _without_name(symbol: ElfSymbol) -> str:
    """A symbol without its name where the file defines it."""
    return f"{symbol.value}+{symbol.size}" if symbol.section else symbol.name


def _is_shared_constant(section: ElfSection) -> bool:
    """Whether a section of a cubin holds constants or initial values for all kernels."""
    name = section.name
    one_bank: Callable[[str], bool] = lambda text: text.startswith(".nv.constant") and text.count(".") == 2  # noqa: E731
    return (one_bank(name) and not name.startswith(".nv.constant0")) or name.startswith(".nv.global")
