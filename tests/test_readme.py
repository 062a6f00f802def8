"""The README's kernel of one's own works as printed, and its output is what the README shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from .conftest import ROOT, Ran


def test_kernel_of_ones_own(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    text = (ROOT / "README.md").read_text()
    (tmp_path / "kernels").mkdir()
    for language, name in (
        ("toml", "pyproject.toml"),
        ("python", "kernels/softmax.py"),
        ("cuda", "kernels/softmax.cu"),
    ):
        block, *_ = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        (tmp_path / name).write_text(block)
    ran = audit(tmp_path, "run", "--shape", "softmax")
    assert ran.code == 1
    (shown,) = re.findall(r"```\n\$ audit run --shape softmax\n(.*?)\nevidence", text, re.DOTALL)
    # The last bits of the C library's expf, and seconds, differ between machines.
    assert _without_numbers(shown) == _without_numbers(ran.out.partition("\nevidence")[0])


def test_kernel_from_elsewhere() -> None:
    text = (ROOT / "README.md").read_text()
    project = ROOT / "tests/projects/layernorm"
    for language, name in (("cpp", "kernels/layernorm.cu"), ("py", "kernels/layernorm.py")):
        (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        assert block == (project / name).read_text()


def _without_numbers(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", text)
