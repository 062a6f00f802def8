"""A 64-bit little-endian ELF file as data: its sections, its symbols, and where which symbol's address goes.

The layout is that of the System V ABI, gABI chapters 4 and 5. Cubins add one bit, which marks kernels.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import msgspec

CUDA_MACHINE = 190
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_REL, _RELA = struct.Struct("<QQ"), struct.Struct("<QQq")
_SYMTAB, _RELA_TYPE, _NOBITS, _REL_TYPE, _STRINGS = 2, 4, 8, 9, 0x20
_FUNCTION, _SECTION_SYMBOL = 2, 3
_KERNEL = 0x10  # STO_CUDA_ENTRY in a symbol's `other`
_MOST_SECTIONS = 0xFF00  # of indices from here on, none is a section's


class ElfSymbol(msgspec.Struct, frozen=True):
    """A symbol. `section` is the index of the one that defines it; 0 where another file must."""

    name: str
    section: int
    value: int
    size: int
    is_function: bool
    is_kernel: bool  # in a cubin: a function that can be launched
    is_section: bool  # it stands for its section


class ElfRelocation(msgspec.Struct, frozen=True):
    """At `offset` of a section the address of a symbol goes, plus `addend`."""

    offset: int
    kind: int
    symbol: int
    addend: int  # 0 where the section's bytes hold it


class ElfSection(msgspec.Struct, frozen=True):
    """A section by its index in the file; its bytes are empty where the file holds none."""

    name: str
    size: int
    content: bytes
    is_strings: bool  # strings that a linker may merge
    relocations: tuple[ElfRelocation, ...]


class ElfFile(msgspec.Struct, frozen=True):
    """An ELF file."""

    machine: int
    flags: int
    sections: tuple[ElfSection, ...]
    symbols: tuple[ElfSymbol, ...]

    def section_named(self, name: str) -> int:
        """The index of the section of that name; 0 if there is none."""
        return next((at for at, section in enumerate(self.sections) if section.name == name), 0)

    def symbol_named(self, name: str) -> ElfSymbol | None:
        """The symbol of that name that the file itself defines."""
        return next((one for one in self.symbols if one.name == name and one.section), None)

    @property
    def kernels(self) -> tuple[str, ...]:
        """In a cubin: the names of the functions that can be launched."""
        return tuple(one.name for one in self.symbols if one.is_kernel and one.section)


def is_elf(content: bytes) -> bool:
    """Whether the bytes begin as a 64-bit little-endian ELF file."""
    return content[:6] == b"\x7fELF\x02\x01"


def read_elf(content: bytes) -> ElfFile:
    """The file's content. Raises ValueError if it is no whole ELF file."""
    if not is_elf(content):
        raise ValueError("expected a 64-bit little-endian ELF file")
    try:
        return _read(content)
    except (struct.error, IndexError) as error:
        raise ValueError(f"expected a whole ELF file, but: {error}") from error


def _read(content: bytes) -> ElfFile:
    header = _HEADER.unpack_from(content)
    machine, start, flags = header[1], header[5], header[6]
    size, count, names = header[10:]
    if start + count * size > len(content) or size < _SECTION.size:
        raise IndexError("its table of sections is not there")
    raw = [_SECTION.unpack_from(content, start + at * size) for at in range(count)]
    bodies = [b"" if one[1] == _NOBITS else content[one[4] : one[4] + one[5]] for one in raw]
    symbols: tuple[ElfSymbol, ...] = ()
    relocations: dict[int, list[ElfRelocation]] = {}
    for one, body in zip(raw, bodies, strict=True):
        if one[1] == _SYMTAB:
            symbols = tuple(_symbols(body, bodies[one[6]]))
        elif one[1] in (_RELA_TYPE, _REL_TYPE):
            relocations.setdefault(one[7] & 0xFFFFFF, []).extend(_relocations(body, one[1] == _RELA_TYPE))
    sections = tuple(
        ElfSection(_text(bodies[names], one[0]), one[5], body, bool(one[2] & _STRINGS), tuple(relocations.get(at, ())))
        for at, (one, body) in enumerate(zip(raw, bodies, strict=True))
    )
    return ElfFile(machine, flags, sections, symbols)


def _symbols(body: bytes, names: bytes) -> Iterator[ElfSymbol]:
    for name, kind, other, section, value, size in _SYMBOL.iter_unpack(body):
        yield ElfSymbol(
            _text(names, name),
            section if section < _MOST_SECTIONS else 0,
            value,
            size,
            kind & 15 == _FUNCTION,
            kind & 15 == _FUNCTION and bool(other & _KERNEL),
            kind & 15 == _SECTION_SYMBOL,
        )


def _relocations(body: bytes, has_addend: bool) -> Iterator[ElfRelocation]:
    fields: Sequence[int]
    for fields in (_RELA if has_addend else _REL).iter_unpack(body):
        offset, about = fields[:2]
        yield ElfRelocation(offset, about & 0xFFFFFFFF, about >> 32, fields[2] if has_addend else 0)


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode(errors="replace") if start < len(names) else ""
