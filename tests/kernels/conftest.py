"""The tests of kernels audit in their own process, which has already imported everything an audit needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..conftest import Ran


@pytest.fixture
def audit(audit_here: Callable[..., Ran]) -> Callable[..., Ran]:
    """Run `audit` in a folder: `audit(project, "run", "--shape", "q6")`."""
    return audit_here


@pytest.fixture(autouse=True)
def _kernels_alone(kernels_alone: None) -> None:
    """Use `kernels_alone` in all tests of kernels."""
