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
from audit.project import Project, find


def resolve(project: Project, revision: str) -> str:
    """The commit that a revision names; PlanError where there is no such thing."""
    if revision.startswith("-"):
        raise PlanError(f"--against: expected a git revision, but got {revision!r}")
    done = _git(project.root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if done.returncode != 0:
        raise PlanError(
            f"--against: expected a git revision of {project.root}, but got {revision!r}; `git log` shows them"
        )
    return done.stdout.decode().strip()


def project_at(project: Project, commit: str) -> Project:
    """The project's own folder at a commit, laid out once in the cache."""
    folder = default_cache().resolve() / "revisions" / commit
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        done = _git(project.root, "archive", "--format=tar", commit)
        if done.returncode != 0:
            raise PlanError(f"--against: git archive {commit}: {done.stderr.decode(errors='replace').strip()}")
        aside = Path(tempfile.mkdtemp(prefix=f".{commit}.", dir=folder.parent))
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # which Python 3.11.2 lacks
            archive.extractall(aside)
        try:
            aside.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(aside)
    return find(folder)


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *words], cwd=root, capture_output=True, timeout=120, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except FileNotFoundError:
        raise PlanError("--against: expected git on PATH; install it") from None
