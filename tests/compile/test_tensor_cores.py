"""The instruction that ran decides the model: what is not known is not guessed."""

from __future__ import annotations

import pytest

from audit.compile.host import TARGETS
from audit.compile.tensor_cores import is_tensor_core, model_of


@pytest.mark.parametrize(
    ("opcode", "arch", "model"),
    [
        ("HMMA.884.F32.STEP2", "sm_70", "sm_70"),
        ("HMMA.1688.F32", "sm_75", "sm_80"),
        ("HMMA.1688.F32", "sm_89", "sm_80"),
        ("HMMA.16816.F32", "sm_80", "sm_80"),
        ("HMMA.16816.F32", "sm_86", "sm_80"),
        ("HMMA.16816.F32", "sm_90", "sm_90"),
        ("HMMA.16816.F32", "sm_90a", "sm_90"),
        ("HMMA.1688.F32", "sm_90", None),
        ("HMMA.16816.F32", "sm_100", None),
        ("HMMA.16816.F32", "sm_120", None),
        ("HMMA.884.F32.STEP0", "sm_80", None),
        ("HMMA.16816.F16", "sm_80", None),
        ("HMMA.16816.F32.BF16", "sm_80", None),
        ("HMMA.1688.F32.TF32", "sm_80", None),
        ("HGMMA.64x64x16.F32", "sm_90", None),
        ("IMMA.16832.S8.S8", "sm_80", None),
        ("DMMA.884", "sm_90", None),
        ("QGMMA.64x64x32.F32.E4M3.E4M3", "sm_90", None),
        ("HMMA.16816.F32", "compute_90", None),
    ],
)
def test_what_is_known(opcode: str, arch: str, model: str | None) -> None:
    assert is_tensor_core(opcode)
    assert model_of(opcode, arch) == model


def test_what_is_no_tensor_core_instruction() -> None:
    assert not any(map(is_tensor_core, ("FFMA", "HFMA2.MMA", "IMAD", "HMUL2", "R2UR", "")))


def test_every_architecture_of_the_host_backend_has_an_instruction_with_its_model() -> None:
    usual = ("HMMA.884.F32.STEP0", "HMMA.1688.F32", "HMMA.16816.F32")
    for arch, target in TARGETS.items():
        assert {model_of(opcode, arch) for opcode in usual} - {None} == {target.model}
