"""Addresses in a host program's message, `@1a2b`, become lines of the source with their text.

binutils, which every g++ needs, provides `addr2line`. Without it an address stays one.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from audit import processes

_ADDRESS = re.compile(r"@([0-9a-f]{1,16})\b")
_LINE = re.compile(r"(?:\./)*(?P<file>\S+):(?P<line>\d+)")
_MARK = re.compile(r'#line (\d+) "')
_GROUP = re.compile(
    r"threads? (?P<threads>\d[\d, -]*) (?P<where>exited|had no turn yet|at .+?)(?=; threads? \d|$)", re.DOTALL
)
_GROUPS = re.compile(r"threads? \d[\d, -]* (?:at|exited|had).*$", re.DOTALL)
_LIMIT = 20.0  # seconds
_SHOWN = 80  # characters of a source line


def with_lines(message: str, program: Path) -> str:
    """The message, in which each address in `program` is a line of a source that the program was built from."""
    tool = shutil.which("addr2line")
    addresses = list(dict.fromkeys(_ADDRESS.findall(message)))
    if tool is None or not addresses:
        return message
    for address in addresses:
        asked = processes.run_process([tool, "-i", "-e", program, f"0x{address}"], _LIMIT)
        frames = [_LINE.match(line) for line in asked.output.decode(errors="replace").splitlines()]
        for frame in frames:  # the innermost first: a header of the runtime, called by the kernel
            if frame is None or not (source := program.parent / "source" / frame["file"]).is_file():
                continue
            number = int(frame["line"])
            message = message.replace(f"@{address}", f"{frame['file']}:{number} `{_text(source, number)}`")
            break
    return _GROUPS.sub(_merged, message)


def _merged(groups: re.Match[str]) -> str:
    """Threads at one place, which several instructions of a line make several, are one group."""
    threads: dict[str, set[int]] = {}
    for group in _GROUP.finditer(groups[0]):
        spans = (re.fullmatch(r"(\d+)(?:-(\d+))?", span) for span in group["threads"].split(", "))
        numbers = {number for span in spans if span for number in range(int(span[1]), int(span[2] or span[1]) + 1)}
        threads.setdefault(group["where"], set()).update(numbers)
    return "; ".join(f"{_spans(sorted(numbers))} {where}" for where, numbers in threads.items())


def _spans(numbers: Sequence[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    shown = ", ".join("-".join(map(str, span)) for span in spans)
    return f"thread{'s' if len(numbers) > 1 else ''} {shown}"


def _text(rewritten: Path, number: int) -> str:
    """A line of a source, from the text that was compiled, whose `#line` give it its numbers."""
    current = 0
    for line in rewritten.read_text(encoding="utf-8", errors="replace").splitlines():
        if mark := _MARK.match(line):
            current = int(mark[1]) - 1
            continue
        current += 1
        if current == number:
            return line.strip()[:_SHOWN]
    return ""
