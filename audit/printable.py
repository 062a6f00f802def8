"""Text of others as it may be shown: what moves a cursor, hides or turns round text is written as its number.

Names in records, paths, messages of compilers and the output of kernels may be anybody's. A line of theirs must not
begin a command of GitHub's runner either, which reads stdout and stderr: `::name` at the start of a line, behind any
blanks, and `##[name` anywhere in it.
"""

from __future__ import annotations

import re
import unicodedata

_COMMAND = re.compile(r"^(\s*)::|##\[", re.MULTILINE)
_MOST = 300


def printable(text: str) -> str:
    """The text with every character that prints nothing as `\\x1b`, lines kept, and no command of a runner in it."""
    return without_commands(visible(text))


def visible(text: str) -> str:
    """The text with every character that prints nothing as `\\x1b` or `\\u202e`; blanks, tabs and line ends stay."""
    return text if text.isprintable() else "".join(map(_shown, text))


def without_commands(text: str) -> str:
    """The text with a backslash inside of what would be a command of a runner."""
    return _COMMAND.sub(lambda found: "##\\[" if found[0] == "##[" else f"{found[1]}\\::", text)


def one_line(error: object, most: int = _MOST) -> str:
    """What an error says of something foreign, in one line of bounded length."""
    return printable(" ".join(str(error)[: 4 * most].split()))[:most]


def printable_json(encoded: bytes) -> str:
    """JSON with the same meaning, printable: escapes stand only inside of strings, where JSON has them too."""
    text = encoded.decode().replace("##[", "#\\u0023[")
    return text if text.isprintable() else "".join(map(_escaped, text))


def _shown(each: str) -> str:
    if _stays(each):
        return each
    number = ord(each)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escaped(each: str) -> str:
    if _stays(each):
        return each
    halves = each.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))


def _stays(each: str) -> bool:
    return each.isprintable() or each in "\n\t" or unicodedata.category(each) == "Zs"
