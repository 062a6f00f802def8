"""A plan whose checks would say yes to a wrong result is inconclusive, and says to which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from audit import vacuity
from audit.spec import Array, Case
from audit.vacuity import Exposure, unseen

from .conftest import Ran


def change(project: Path, old: str, new: str) -> None:
    source = project / "kernels/softmax.py"
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))


def run(audit: Callable[..., Ran], project: Path) -> Ran:
    return audit(project, "run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33")


def test_a_bound_that_admits_zeros_is_found_out(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    change(softmax_project, 'RelL2("y", 1e-6)', 'RelL2("y", 1.0)')
    ran = run(audit, softmax_project)
    assert ran.code == 3
    assert "no check of this plan can tell a right result from zeros" in ran.out


def test_a_mutation_of_ones_own(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    """Rows that do not sum to 1 by a little: a bound of 1e-2 is blind to it, one of 1e-6 is not."""
    change(
        softmax_project,
        'bounds=[RelL2("y", 1e-6)],',
        'bounds=[RelL2("y", LIMIT)], mutations=[Mutation("scaled", scaled)],',
    )
    change(softmax_project, "from audit.spec import Axis", "LIMIT = 1e-2\nfrom audit.spec import Mutation, Axis")
    change(
        softmax_project,
        "def softmax64",
        'def scaled(c, x, got, refs):\n    return {"y": got["y"] * np.float32(1.001)}\n\n\ndef softmax64',
    )
    ran = run(audit, softmax_project)
    assert ran.code == 3
    assert "can tell a right result from scaled\n" in ran.out
    change(softmax_project, "LIMIT = 1e-2", "LIMIT = 1e-6")
    assert run(audit, softmax_project).code == 0


def test_unseen_looks_over_the_whole_plan() -> None:
    def exposure(name: str, case: str, *caught: str) -> Exposure:
        return Exposure(name, case, True, caught)

    found = [exposure("a", "1"), exposure("a", "2", "error:x"), exposure("b", "1"), Exposure("c", "1", False, ())]
    assert unseen(found, pruned=False) == ("b", "c")
    assert unseen(found, pruned=True) == ("b",)


def test_noise_is_not_what_the_generator_of_the_inputs_draws() -> None:
    """A kernel that copies its input: noise from the same generator would be right."""
    case = Case("copy", "copy", {"n": 64}, seed=1)
    x = case.rng().normal(0, 1, 64).astype(np.float32)
    noise = vacuity._noise(x, SimpleNamespace(case=case))  # type: ignore[arg-type]
    assert not np.allclose(noise, x, atol=0.1)


@pytest.mark.parametrize(
    "right",
    [
        np.full(5, 884, np.int32),
        np.array([256], np.uint32),
        np.array([2**64 - 1], np.uint64),
        np.zeros(3, np.uint8),
        np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max]),
    ],
)
def test_noise_of_integers_is_another_result_of_their_type(right: Array) -> None:
    noise = vacuity._noise(right, SimpleNamespace(case=Case("one", "one", {}, seed=1)))  # type: ignore[arg-type]
    assert (noise.dtype, noise.shape) == (right.dtype, right.shape)
    assert not np.array_equal(noise, right)


def test_zeros_that_are_right_need_no_check_that_rejects_them() -> None:
    applied = [Exposure("zeros", "case", False, ()), Exposure("noise", "case", True, ("error",))]
    assert unseen(applied, pruned=False) == ()
    assert unseen([Exposure("dropped_token", "case", False, ())], pruned=False) == ("dropped_token",)
    assert unseen([Exposure("zeros", "case", True, ())], pruned=False) == ("zeros",)
