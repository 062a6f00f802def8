"""The project's files that a kernel source includes, directly or through others, and their lines.

`python tests/kernels/include_closure.py kernels/grouped/direct/piped_roles.cu` lists them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def include_closure(source: Path) -> dict[Path, int]:
    """Lines of each file, the source first. A quoted name with no file beside the includer belongs to the toolkit."""
    lines: dict[Path, int] = {}
    pending = [source.resolve()]
    while pending:
        file = pending.pop()
        if file in lines:
            continue
        text = file.read_text(encoding="utf-8")
        lines[file] = len(text.splitlines())
        named = [(file.parent / name).resolve() for name in _QUOTED.findall(text)]
        pending += [path for path in named if path.is_file()]
    return lines


def main() -> None:
    """Print the closure of each named source."""
    for name in sys.argv[1:]:
        closure = include_closure(Path(name))
        for file, count in closure.items():
            print(f"{count:5}  {file}")
        print(f"{sum(closure.values()):5}  {len(closure)} files, of which {len(closure) - 1} headers")


if __name__ == "__main__":
    main()
