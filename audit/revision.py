"""The project as it was at a git revision, beside the working tree."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from audit.compile.cache import default_cache
from audit.errors import PlanError
from audit.project import Project, find_project


def resolve(project: Project, revision: str) -> str:
    """The commit that a revision names. Raises PlanError if there is none."""
    if revision.startswith("-"):
        raise PlanError(f"--against: expected a git revision, but got {revision!r}")
    result = _git(project.root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if result.returncode != 0:
        raise PlanError(
            f"--against: expected a git revision of {project.root}, but got {revision!r}; `git log` shows them"
        )
    return result.stdout.decode().strip()


def project_at(project: Project, commit: str) -> Project:
    """The project at a commit, extracted into the cache once."""
    folder = default_cache().resolve() / "revisions" / commit
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        result = _git(project.root, "archive", "--format=tar", commit)
        if result.returncode != 0:
            raise PlanError(f"--against: git archive {commit} failed: {result.stderr.decode(errors='replace').strip()}")
        aside = Path(tempfile.mkdtemp(prefix=f".{commit}.", dir=folder.parent))
        with tarfile.open(fileobj=io.BytesIO(result.stdout)) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 lacks it
            archive.extractall(aside)
        try:
            aside.rename(folder)
        except OSError:  # another process extracted it first
            shutil.rmtree(aside)
    return find_project(folder)


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *words], cwd=root, capture_output=True, timeout=120, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except FileNotFoundError:
        raise PlanError("--against: expected git on PATH, but found none; install it") from None
