"""One block of a grouped kernel under a host sanitizer: split 0, the first row tile."""

from __future__ import annotations

from pathlib import Path

import msgspec

from audit import bundle
from audit.compile.host import build_host
from audit.project import find_project
from audit.records.sanitize import Observation, Tool
from audit.sanitize.host import tools as host
from audit.sanitize.host.output import observe_host_run
from audit.sanitize.host.tools import BUILT_FOR, HostRun

ROOT = Path(__file__).resolve().parents[2]
GROUPED = find_project(ROOT).operators["grouped"]


def run_one_block(
    root: Path, folder: Path, name: str, context: int, tool: Tool = "racecheck", schedule: int = 0, page: int = 1648
) -> tuple[HostRun, Observation]:
    """Run variant `name` with the sources of `root`: two rows of three heads of 64 dimensions. Makes `folder`."""
    variant = GROUPED.variant(name)
    case = GROUPED.case(GROUPED.shapes[0], {"heads": 3, "dim": 64, "context": context, "page": page}, seed=1)
    inputs = GROUPED.inputs(case, case.rng())
    folder.mkdir()
    whole = bundle.write_bundle(folder, GROUPED, variant, case, inputs, {"live": {}}, policy="exact")
    first = msgspec.structs.replace(whole.launches[0], grid=(1, 1, 1))
    alone = msgspec.structs.replace(whole, launches=(first,), schedule_seed=schedule)
    (folder / bundle.MANIFEST).write_bytes(msgspec.json.encode(alone))
    program = build_host(root, root / variant.code.path, alone.entries, sanitizer=BUILT_FOR[tool])
    ran = host.run_host_tool(tool, folder, alone, program, 120)
    return ran, observe_host_run(ran, alone, list(program.identity.sources))
