"""The project as it was at a git revision, beside the working tree.

Every file is taken from git's own objects, unfiltered, into a folder of the cache that is named after their tree. Each
command compares that folder with the tree again: a file that is missing, edited or added makes it anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath

from audit.compile.cache import default_cache
from audit.errors import PlanError, ProjectError
from audit.git import environment, git
from audit.project import Project, project_in

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FILES = ("100644", "100755", "100664")
_REFUSED = {"120000": "a symbolic link", "160000": "a submodule"}
_BLOCK = 2**20


def resolve_revision(project: Project, revision: str) -> str:
    """The commit that a revision names. Raises PlanError if there is none."""
    if revision.startswith("-"):
        raise PlanError(f"--against: expected a git revision, but got {revision!r}")
    _prefix(project.root)
    result = _git(project.root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    commit = result.stdout.decode(errors="replace").strip()
    if result.returncode != 0 or not _ID.fullmatch(commit):
        shallow = _git(project.root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
        fetch = "this clone is shallow, and `git fetch --unshallow` fetches older ones" if shallow else ""
        raise PlanError(
            f"--against: expected a git revision of {project.root}, but got {revision!r}; "
            f"{fetch or '`git log` shows them'}"
        )
    return commit


@lru_cache(maxsize=16)
def project_at(project: Project, commit: str) -> Project:
    """The project as a commit has it, in a verified folder of the cache.

    Raises PlanError where the commit does not have the project, or has it with symbolic links or submodules.
    """
    name, prefix = commit[:12], _prefix(project.root)
    found = _git(project.root, "rev-parse", "--verify", "--quiet", f"{commit}:{prefix}")
    tree = found.stdout.decode(errors="replace").strip()
    if found.returncode != 0 or not _ID.fullmatch(tree):
        raise PlanError(f"--against: {name} has no folder {prefix}; name a revision that has this project")
    blobs = _blobs(project.root, tree, name)
    if "pyproject.toml" not in blobs:
        raise PlanError(
            f"--against: {name} has no {PurePosixPath(prefix) / 'pyproject.toml'}; name a revision that has the project"
        )
    try:
        return project_in(_folder(project.root, tree, blobs, name))
    except ProjectError as error:
        raise PlanError(f"--against: {name} has no project that can be loaded: {error}") from None


def _prefix(root: Path) -> str:
    """The project's folder relative to the top of its repository; empty where it is the top."""
    result = _git(root, "rev-parse", "--show-toplevel", "--show-prefix")
    top, _, rest = result.stdout.partition(b"\n")
    prefix = os.fsdecode(rest.removesuffix(b"\n")).removesuffix("/")
    if result.returncode != 0 or (Path(os.fsdecode(top)) / prefix).resolve() != root.resolve():
        reason = result.stderr.decode(errors="replace").strip() or "the repository has its working tree elsewhere"
        raise PlanError(f"--against: expected {root} in the working tree of a git repository: {reason}")
    return prefix


def _blobs(root: Path, tree: str, name: str) -> dict[str, str]:
    """Path -> id of every file of a tree."""
    result = _git(root, "ls-tree", "-r", "-z", "--full-tree", tree)
    if result.returncode != 0:
        raise PlanError(f"--against: git cannot list {name}: {result.stderr.decode(errors='replace').strip()}")
    blobs = {}
    for line in result.stdout.split(b"\0")[:-1]:
        about, _, raw = line.partition(b"\t")
        mode, _, blob = about.decode().split(" ")
        path = os.fsdecode(raw)
        if mode in _REFUSED:
            raise PlanError(
                f"--against: {path} is {_REFUSED[mode]} in {name}, which may lead out of the revision; "
                f"expected plain files, so name a revision without it"
            )
        parts = path.split("/")
        if mode not in _FILES or any(part.lower() in ("", ".", "..", ".git") for part in parts):
            raise PlanError(f"--against: {path!r} in {name} is no plain file inside of a folder; name another revision")
        blobs[path] = blob
    return blobs


def _folder(root: Path, tree: str, blobs: Mapping[str, str], name: str) -> Path:
    """The folder of the cache with exactly these files."""
    folder = default_cache().resolve() / "revisions" / tree
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / f".{tree}.lock"):
        if _is_exact(folder, blobs):
            return folder
        for left in folder.parent.glob(f".{tree}.*.aside"):  # from a killed process: this one holds the lock
            shutil.rmtree(left, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{tree}.", suffix=".aside", dir=folder.parent))
        try:
            _extract(root, blobs, aside / "new", name)
            if not _is_exact(aside / "new", blobs):
                raise PlanError(f"--against: the objects of {name} are not what their ids say; `git fsck` names them")
            if os.path.lexists(folder):
                folder.rename(aside / "old")
            (aside / "new").rename(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return folder


def _extract(root: Path, blobs: Mapping[str, str], folder: Path, name: str) -> None:
    """Write every file as git keeps it: no attribute and no filter changes a byte."""
    folder.mkdir()
    with tempfile.TemporaryFile() as wanted:
        wanted.write("".join(f"{blob}\n" for blob in blobs.values()).encode())
        wanted.seek(0)
        with subprocess.Popen(
            ["git", "cat-file", "--batch"],
            cwd=root,
            stdin=wanted,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        ) as process:
            assert process.stdout is not None
            for path, blob in blobs.items():
                header = process.stdout.readline().split()
                if header[:2] != [blob.encode(), b"blob"]:
                    process.kill()
                    raise PlanError(
                        f"--against: {path} of {name} is not in this clone; fetch it (`git fetch --refetch`), or name "
                        f"another revision"
                    )
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(process.stdout.read(int(header[2])))
                process.stdout.read(1)


def _is_exact(folder: Path, blobs: Mapping[str, str]) -> bool:
    """Whether a folder holds these files and no other, each with the content that its id names."""
    expected = {*blobs, *(f"{parent}/" for path in blobs for parent in PurePosixPath(path).parents)} - {"./"}
    try:
        return {*_entries(folder, "")} == expected and all(
            _blob_id(folder / path, len(blob)) == blob for path, blob in blobs.items()
        )
    except OSError:
        return False


def _entries(folder: Path, below: str) -> Iterator[str]:
    """All plain files and, with a `/` at the end, folders; anything else under a name that no tree has."""
    if folder.is_symlink():
        yield "/"
        return
    for entry in os.scandir(folder):
        name = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield f"{name}/"
            yield from _entries(Path(entry.path), f"{name}/")
        else:
            yield name if entry.is_file(follow_symlinks=False) else f"{name}//"


def _blob_id(file: Path, digits: int) -> str:
    """The id that git gives to a file's content; 40 digits are a SHA-1, 64 a SHA-256."""
    digest = hashlib.sha1(usedforsecurity=False) if digits == 40 else hashlib.sha256()
    with file.open("rb") as stream:
        digest.update(b"blob %d\0" % os.fstat(stream.fileno()).st_size)
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return git(root, *words)
    except FileNotFoundError:
        raise PlanError("--against: expected git on PATH, but found none; install it") from None
    except subprocess.TimeoutExpired:
        raise PlanError(f"--against: git {words[0]} gave no answer in two minutes; is the disk at hand?") from None
