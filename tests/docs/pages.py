"""The pages that describe the tool, and their blocks.

An HTML comment above a block, which no reader sees, says what the block is:

    <!-- file: softmax/kernels/softmax.cu -->           a file of the project `softmax`; blocks of one file are joined
    <!-- in: softmax -->                                commands and what they print in that project
    <!-- copy: fixtures/captures to norms/captures -->  a folder of this repository, copied into the project `norms`

A project of a page has the files that README gives to the project of that name, unless the page has its own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..conftest import ROOT

README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
LINKED = (*PAGES, ROOT / "reports/README.md")
_BLOCK = re.compile(
    r"(?:^<!-- (?P<role>file|in): (?P<value>\S+) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COPY = re.compile(r"^<!-- copy: (\S+) to ([^/\s]+)/(\S+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block. `role` is file, in, or empty; `value` is what its comment names."""

    page: Path
    line: int
    language: str
    text: str
    role: str
    value: str

    @property
    def name(self) -> str:
        """Where it stands, for a reader of a test's output."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def project(self) -> str:
        """The project that it belongs to; empty for none."""
        return self.value.partition("/")[0]


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page, in its order."""
    text = page.read_text()
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        yield Block(page, line, found["language"], found["text"], found["role"] or "", found["value"] or "")


def block(page: Path, language: str, words: str) -> str:
    """The one block of a page in a language that contains some words."""
    (found,) = [each.text for each in blocks(page) if each.language == language and words in each.text]
    return found


def projects() -> list[tuple[Path, str]]:
    """Every project of every page."""
    found = [(each.page, each.project) for page in PAGES for each in blocks(page) if each.project]
    return list(dict.fromkeys(found))


def files(page: Path, project: str) -> dict[str, str]:
    """The files that a page gives to a project, by their paths in it."""
    found: dict[str, str] = {}
    for each in blocks(page):
        if each.role == "file" and each.project == project:
            path = each.value.partition("/")[2]
            found[path] = found.get(path, "") + each.text
    return found


def lay_out(page: Path, project: str, home: Path) -> None:
    """Write a project of a page into the folder `home`."""
    for path, text in {**files(README, project), **files(page, project)}.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    for source, owner, path in _COPY.findall(page.read_text()):
        if owner == project:
            shutil.copytree(ROOT / source, home / path)


def transcripts(page: Path, project: str) -> Iterator[tuple[str, str]]:
    """(command, what it prints) of every transcript of a project."""
    for each in blocks(page):
        if each.role == "in" and each.project == project:
            for shown in re.split(r"^\$ ", each.text, flags=re.MULTILINE)[1:]:
                command, _, printed = shown.partition("\n")
                yield command, printed
