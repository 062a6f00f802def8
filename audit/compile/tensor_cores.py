"""The tensor-core model of the instructions in a cubin. The instructions decide it, not the PTX or the architecture.

The models are those of audit/simt/tensor_core.md, named as the host build names them (`audit.compile.host`).
"""

from __future__ import annotations

import re

# f16 operands, f32 accumulators: (opcode, first and last architecture, model). HMMA.16816 is two steps of L=8 up to
# sm_89, and one step of L=16 on sm_90, as measured there. HMMA.1688 was not measured on sm_90 and has no model there.
_KNOWN = (
    ("HMMA.884.F32", 70, 72, "sm_70"),
    ("HMMA.1688.F32", 75, 89, "sm_80"),
    ("HMMA.16816.F32", 80, 89, "sm_80"),
    ("HMMA.16816.F32", 90, 90, "sm_90"),
)


def is_tensor_core(opcode: str) -> bool:
    """HMMA, IMMA, DMMA, QMMA, HGMMA and the like, with any modifiers."""
    return opcode.partition(".")[0].endswith("MMA")


def model_of(opcode: str, arch: str) -> str | None:
    """The model of one instruction in code for `arch` (sm_90, sm_90a); None if no model is known."""
    match = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if match is None:
        return None
    shape, version = re.sub(r"\.STEP\d", "", opcode), int(match[1])  # an HMMA.884 is one of several steps of a product
    return next((model for name, first, last, model in _KNOWN if name == shape and first <= version <= last), None)
