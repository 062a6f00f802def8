"""PTX of one instruction, as programs that apply it to arrays of operands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from audit.compile.host import HostBuild
from audit.compile.ptx_build import build_ptx
from audit.ptx.syntax import WIDTHS
from audit.spec import Machine
from tests.simt.programs import Call, launch_all

Words = npt.NDArray[np.unsignedinteger]
HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
_LETTER = {8: "c", 16: "h", 32: "r", 64: "d"}


def kernel(name: str, mnemonic: str, result: str, operands: Sequence[str]) -> str:
    """A kernel out[i] = mnemonic(a[i], b[i], ...), each type by its name; `pred` is written as 0 or 1."""
    registers = "".join(f".reg .b{width} %{letter}<8>; " for width, letter in _LETTER.items() if width > 8)
    parameters = ", ".join(f".param .u64 p{number}" for number in range(len(operands) + 1))
    lines = [
        f".visible .entry {name}({parameters}) {{",
        f"{registers}.reg .b64 %a<8>; .reg .b32 %t<2>; .reg .pred %p<8>;",
    ]
    lines.append("mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; mad.lo.u32 %t0, %t1, 128, %t0;")
    names = []
    for number, kind in enumerate((result, *operands)):
        width = 32 if kind == "pred" else max(16, WIDTHS[kind])
        lines.append(f"ld.param.u64 %a{number}, [p{number}];")
        lines.append(f"mad.wide.u32 %a{number}, %t0, {width // 8}, %a{number};")
        register = f"%{_LETTER[width]}{number}"
        if number:
            lines.append(f"ld.b{width} {register}, [%a{number}];")
        if kind == "pred" and number:
            lines.append(f"setp.ne.u32 %p{number}, {register}, 0;")
        names.append(f"%p{number}" if kind == "pred" else register)
    lines.append(f"{mnemonic} {', '.join(names)};")
    if result == "pred":
        lines.append("selp.u32 %r0, 1, 0, %p0;")
    width = 32 if result == "pred" else max(16, WIDTHS[result])
    lines.append(f"st.b{width} [%a0], %{_LETTER[width]}0;\nret;\n}}")
    return "\n".join(lines) + "\n"


def entry_name(mnemonic: str) -> str:
    """A kernel's name for a mnemonic."""
    return "k_" + re.sub(r"\W", "_", mnemonic)


def built(folder: Path, text: str, entries: Sequence[str], **options: object) -> HostBuild:
    """A PTX text as a program."""
    (folder / "module.ptx").write_text(text)
    return build_ptx(folder, Machine("module.ptx"), entries, **options)  # type: ignore[arg-type]


def results(program: HostBuild, folder: Path, calls: Mapping[str, tuple[Sequence[Words], str]]) -> dict[str, Words]:
    """entry -> what it wrote, from its operands and the type of its result."""
    made = {}
    for entry, (operands, kind) in calls.items():
        width = 32 if kind == "pred" else max(16, WIDTHS[kind])
        count = len(operands[0])
        assert count % 128 == 0
        out = np.full(count, 0x5A, f"u{width // 8}")
        made[f"{entry}_"] = Call(entry, count // 128, 128, (out, *operands))
    ended = launch_all(program, folder, made)
    assert ended.code == 0, ended.errors
    return {entry: ended.buffers[f"{entry}_b0"] for entry in calls}  # type: ignore[misc]
