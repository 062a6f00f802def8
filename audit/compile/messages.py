"""What a compiler for a GPU printed, made short: its first errors, each once, with paths as the project has them."""

from __future__ import annotations

import re
from pathlib import Path

from audit.compile.device_order import MAIN, PTX, DeviceOrder

_MOST_LINES = 20
_OTHER = re.compile(
    r"\S.*\b(warning|remark|note)\b|\d+ (catastrophic )?errors? detected|\S.*detected in the compilation|"
    r"[Cc]ompilation terminated|ptxas info|Remark:"
)
_DEPRECATED = re.compile(r"\(\d+\): warning\b.* was declared deprecated")
_ATTRIBUTES = re.compile(r"__attribute__\(\((global|device|host|shared|constant|managed)\)\)|__(host|device)__ __\2__")


def compiler_errors(text: str, tree: Path, order: DeviceOrder) -> str:
    """The first errors of a log, without the paths of `tree`. An entry's name replaces its line in their list.

    An error of ptxas names a line of the PTX. Warnings of deprecated functions then name those of the source.
    """
    text = text.replace(PTX, f"PTX of {order.source}").replace("application ptx input", f"PTX of {order.source}")
    plain = text.replace("\0", "").replace(f"{tree}/", "").replace(f"{tree.resolve()}/", "")
    blocks: list[str] = []
    for block in _blocks(_named(plain, order)):
        if block not in blocks:
            blocks.append(block)
    if any(block.startswith("ptxas") for block in blocks):
        blocks += [line for line in plain.splitlines() if _DEPRECATED.search(line) and line not in blocks]
    lines = "\n".join(blocks or [plain.strip()]).splitlines()
    return "\n".join(lines[:_MOST_LINES]) or "the compiler failed without a message"


def _blocks(text: str) -> list[str]:
    """Each error, with the lines below it that show the source."""
    blocks: list[list[str]] = []
    within = False
    for line in text.splitlines():
        if re.search(r"\berror\b|\bfatal\b", line) and not re.match(r"\d+ (catastrophic )?errors? detected", line):
            blocks.append([line])
            within = True
        elif not line.strip() or _OTHER.match(line):
            within = False
        elif within:
            blocks[-1].append(_ATTRIBUTES.sub(r"__\1__", line))
    return ["\n".join(block) for block in blocks]


def _named(text: str, order: DeviceOrder) -> str:
    """Line 3 of the file that lists the entries is that of the second entry."""

    def entry(match: re.Match[str]) -> str:
        at = int(match["line"]) - 3
        named = order.expressions[at] if 0 <= at < len(order.expressions) else "the list of entries"
        return f"{order.source}: entry {named}"

    text = re.sub(
        r"__nv_name_map\(\d+\): (error: (?!Error in parsing)[^\n]*)\n\s*#pragma nv_mangled_name ([^\n]*)",
        rf"{order.source}: entry \2: \1",
        text,
    )
    text = re.sub(r"__nv_name_map\(\d+\): [^\n]*\n\s*#pragma[^\n]*(\n\s*\^)?", "", text)
    return re.sub(rf"{re.escape(MAIN)}\((?P<line>\d+)\)", entry, text)
