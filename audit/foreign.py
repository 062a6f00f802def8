"""Files that anyone may have written: read within bounds, and their JSON taken strictly.

Whatever is wrong raises ForeignError, whose text is one printable line. The callers say in their own words which file
it was and what to do.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec

from audit.printable import one_line

MOST_BYTES = 64 * 2**20
"""Of a JSON document."""
MOST_TOML = 2**20
"""Bytes of a TOML document."""
MOST_DEEP = 64
"""Lists and objects inside of one another."""
MOST_LETTERS = 4096
"""Of the name of a field."""

Rule = Callable[[Any], bool]
"""Whether the value of a field is possible at all."""

_T = TypeVar("_T")
_STRINGS = re.compile(rb'"(?:[^"\\]+|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class ForeignError(Exception):
    """What is wrong with a file or its JSON, in one printable line."""


def read(path: Path, limit: int, *, follow: bool = False) -> bytes:
    """The content of a regular file of at most `limit` bytes. Raises ForeignError.

    A FIFO, a device or a folder in its place is refused, not waited for; a link too, unless `follow` is set.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:  # ValueError: a name with NUL
        if not follow and _is_link(path):
            raise ForeignError("expected a plain file, but got a link; copy in what it leads to") from None
        raise ForeignError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
        os.close(descriptor)
        raise ForeignError(
            f"expected a plain file of at most {limit:,} bytes, but got {status.st_size:,} bytes, "
            f"mode {stat.filemode(status.st_mode)}"
        )
    with os.fdopen(descriptor, "rb") as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise ForeignError(f"cannot be read ({error.strerror})") from None
    if len(content) > limit:  # it grew
        raise ForeignError(f"expected at most {limit:,} bytes, but got more")
    return content


def read_toml(path: Path, limit: int = MOST_TOML) -> dict[str, Any]:
    """The document in a file of the project itself, which may be a link. Raises ForeignError."""
    return decode_toml(read(path, limit, follow=True))


def decode_toml(raw: bytes) -> dict[str, Any]:
    """The document that TOML holds. Raises ForeignError."""
    try:
        return tomllib.loads(raw.decode())
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError, and numbers without end
        raise ForeignError(f"malformed TOML: {one_line(error)}") from None


def decode(raw: bytes, kind: type[_T], *, rules: Mapping[str, Rule] | None = None, limit: int = MOST_BYTES) -> _T:
    """The value of that type which JSON holds. Raises ForeignError.

    Refused are duplicate names, names that are not printable, nesting beyond MOST_DEEP, more than `limit` bytes, and
    what is no JSON: NaN, a number beyond binary64, half a surrogate pair, a byte order mark. `rules` say, by the name
    of a field, which values are possible.
    """
    if len(raw) > limit:
        raise ForeignError(f"expected at most {limit:,} bytes of JSON, but got {len(raw):,}")
    _require_shallow(raw)
    try:
        json.loads(raw.decode(), object_pairs_hook=_Fields(rules or {}), parse_constant=_no_number)
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError, OverflowError) as error:
        raise ForeignError(f"malformed JSON: {one_line(error)}") from None


class _Fields:
    """Looks at the fields of every object; what they hold is left to the decoder of the type."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def __call__(self, pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) != len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
        for name, value in pairs:
            if not name.isprintable() or len(name) > MOST_LETTERS:
                raise ValueError(f"the name {name[:40]!r} is not printable or longer than {MOST_LETTERS:,} letters")
            if name in self._rules and not self._rules[name](value):
                raise ValueError(f"{name}: {str(value)[:80]!r} is not possible")


def xml_events(text: str) -> Iterator[tuple[Literal["start", "end"], Element, int]]:
    """Each start and end of an element of XML, with the number of elements that are open then.

    Raises ForeignError where it is malformed, for a document type (whose entities may stand for any length), and for
    nesting beyond MOST_DEEP.
    """
    if "<!DOCTYPE" in text:
        raise ForeignError("expected XML without a document type")
    depth = 0
    try:
        for event, element in ElementTree.iterparse(io.StringIO(text), ("start", "end")):
            assert event in ("start", "end")
            depth += 1 if event == "start" else -1
            if depth > MOST_DEEP:
                raise ForeignError(f"expected at most {MOST_DEEP} levels of elements, but got more")
            yield event, element, depth
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # also an encoding that does not exist
        raise ForeignError(f"malformed XML: {one_line(error)}") from None


def _require_shallow(raw: bytes) -> None:
    """Empty pairs of brackets are removed until nothing is left: once for each level."""
    brackets = _STRINGS.sub(b"", raw).translate(None, _NO_BRACKETS)
    for _ in range(MOST_DEEP):
        if not (fewer := brackets.replace(b"[]", b"").replace(b"{}", b"")) or fewer == brackets:
            break  # brackets that do not match are left to the parser
        brackets = fewer
    else:
        raise ForeignError(f"expected at most {MOST_DEEP} levels of lists and objects, but got more")
    if len(fewer) > 2 * MOST_DEEP:
        raise ForeignError("its brackets do not match")


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False
