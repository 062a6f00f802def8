"""The softmax project with its evidence, made once and copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from audit.project import Project, find_project

from . import made


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.project(tmp_path_factory.mktemp("gate")).root


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole, tmp_path / "softmax")))
