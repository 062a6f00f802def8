"""Which tensor-core model the instructions in a cubin obey. They decide it, not the PTX and not the architecture alone.

The models are those of audit/simt/tensor_core.md, named as the host build names them (`audit.compile.host`).
"""

from __future__ import annotations

import re

# f16 operands, f32 accumulators: (opcode, first and last architecture, model). HMMA.16816 is two steps of L=8 up to
# sm_89, and one of L=16 on sm_90, where it was measured; HMMA.1688 was not, so that sm_90 has no model for it.
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
    """The model of one instruction in code for `arch` (sm_90, sm_90a); None where no model is known."""
    found = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if found is None:
        return None
    shape, version = re.sub(r"\.STEP\d", "", opcode), int(found[1])  # an HMMA.884 is one of several steps of a product
    return next((model for name, first, last, model in _KNOWN if name == shape and first <= version <= last), None)
