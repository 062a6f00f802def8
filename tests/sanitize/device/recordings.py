"""The recorded runs of `fixtures/sanitizer`, as what a run left."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import NamedTuple

from audit.backends import child
from audit.records.sanitize import Observation, Tool
from audit.sanitize.device.compute_sanitizer import ToolOutput, observe_tool_output

FOLDER = Path(__file__).resolve().parents[3] / "fixtures/sanitizers/device"
NAMES = sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())
SOURCES = ("barriers.cu", "extra.cu", "memory.cu", "races.cu", "uninitialised.cu")


class Recording(NamedTuple):
    """One recorded run; `tool` is what it was asked for."""

    tool: Tool
    left: ToolOutput

    def observed(self) -> Observation:
        """What `observe` makes of it, for a target that was to launch one kernel called `kernel`."""
        return observe_tool_output(self.tool, ["recorded"], self.entries, SOURCES, self.left)

    @property
    def entries(self) -> list[str]:
        """The kernels that the target says it launched, or `kernel` if it says so of none."""
        return [count.entry for count in child.launches(self.left.report)] or ["kernel"]


def recording(name: str) -> Recording:
    """The recording of that name."""
    folder = FOLDER / name
    how = json.loads((folder / "how.json").read_text())
    left = ToolOutput(
        log=_read(folder / "log.txt"),
        xml=_read(folder / "records.xml"),
        output=how["output"],
        report=tuple(how["report"]),
        exit_code=how["exit_code"],
        seconds=how["seconds"],
    )
    return Recording(how["tool"], left)


def _read(path: Path) -> str | None:
    packed = path.with_name(f"{path.name}.gz")
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode()
    return path.read_text() if path.exists() else None
