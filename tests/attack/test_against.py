"""`--against` compares with what git has and nothing else: not with the working tree, not with an edited cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.errors import PlanError
from audit.project import find_project
from audit.revision import project_at, resolve_revision

from ..conftest import Ran

Audit = Callable[..., Ran]
SOURCE = "kernels/fast.cu"


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, message: str = "next") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_AUDIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def committed(softmax_project: Path) -> Path:
    git(softmax_project, "init", "-q", "-b", "main")
    commit(softmax_project, "first")
    return softmax_project


def past(project: Path, revision: str = "HEAD") -> Path:
    """The folder of the project at a revision, as a command of its own would take it."""
    here = find_project(project)
    return project_at(here, resolve_revision(here, revision)).root


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def wrong_result(project: Path) -> None:
    """An edit of the working tree that another result shows."""
    source = project / SOURCE
    source.write_text(source.read_text().replace("/ total", "* (1.0f / total)"))


def run(audit: Audit, project: Path, revision: str = "main", **environment: str) -> Ran:
    words = ("run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33", "--against", revision, "--json")
    return audit(project, *words, **environment)


def test_a_cache_inside_of_the_project_holds_the_past(committed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    was = (committed / SOURCE).read_bytes()
    wrong_result(committed)
    monkeypatch.setenv("KERNEL_AUDIT_CACHE", str(committed / "runs/cache"))
    folder = past(committed)
    assert folder.is_relative_to(committed / "runs/cache/revisions")
    assert (folder / SOURCE).read_bytes() == was != (committed / SOURCE).read_bytes()


@pytest.mark.full  # an empty cache compiles the whole model of the GPU
def test_a_cache_inside_of_the_project_compares_with_the_past(committed: Path, audit: Audit) -> None:
    wrong_result(committed)
    ran = run(audit, committed, KERNEL_AUDIT_CACHE=str(committed / "runs/cache"))
    assert ran.code == 1, ran.err
    assert {r["check"] for r in ran.results() if r["verdict"] == "fail"} == {"bytes"}


def test_a_revision_without_the_project_is_refused_and_the_tree_does_not_stand_in(
    committed: Path, audit: Audit
) -> None:
    (committed / "pyproject.toml").rename(committed / "aside")
    without = commit(committed)
    (committed / "aside").rename(committed / "pyproject.toml")
    commit(committed)
    ran = run(audit, committed, without, KERNEL_AUDIT_CACHE=str(committed / "runs/cache"))
    assert ran.code == 2
    assert f"--against: {without[:12]} has no pyproject.toml" in ran.err
    (committed / "pyproject.toml").write_text("[tool.other]\n")
    other = commit(committed)
    git(committed, "checkout", "-q", "HEAD~1", "--", "pyproject.toml")
    with pytest.raises(PlanError, match="has no project that can be loaded"):
        past(committed, other)


def plant(name: str, content: bytes = b"planted") -> Callable[[Path], object]:
    def planted(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    return planted


def same_size_and_time(folder: Path) -> None:
    file = folder / SOURCE
    times = file.stat()
    file.write_bytes(file.read_bytes().replace(b"/ total", b"* total"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def link_to_itself(folder: Path) -> None:
    (folder / SOURCE).rename(folder.parent / "elsewhere.cu")
    (folder / SOURCE).symlink_to(folder.parent / "elsewhere.cu")


def whole_link(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    "damage",
    [
        plant(SOURCE),
        same_size_and_time,
        plant("kernels/pyproject.toml", b"[tool.kernel-audit]\n"),
        plant("kernels/__pycache__/softmax.cpython-311.pyc"),
        plant("kernels/__init__.py", b""),
        lambda folder: (folder / "empty").mkdir(),
        lambda folder: (folder / SOURCE).unlink(),
        lambda folder: (folder / "pyproject.toml").unlink(),
        lambda folder: shutil.rmtree(folder / "kernels"),
        lambda folder: os.mkfifo(folder / "fifo"),
        link_to_itself,
        whole_link,
    ],
)
def test_a_cached_revision_that_differs_is_made_anew(committed: Path, damage: Callable[[Path], object]) -> None:
    folder = past(committed)
    whole = files(folder)
    assert whole == {name: content for name, content in files(committed).items() if not name.startswith(".git/")}
    damage(folder)
    assert past(committed) == folder
    assert files(folder) == whole
    assert not folder.is_symlink()


def test_an_intact_cached_revision_is_not_made_anew(committed: Path) -> None:
    before = (past(committed) / SOURCE).stat().st_ino
    assert (past(committed) / SOURCE).stat().st_ino == before


def test_attributes_and_filters_change_nothing(committed: Path) -> None:
    """`export-ignore` left a file out of an archive, `export-subst` wrote into it, `eol` changes its lines."""
    was = (committed / SOURCE).read_bytes() + b"// $Format:%H$ $Id$\n"
    (committed / SOURCE).write_bytes(was)
    (committed / ".gitattributes").write_text(
        "kernels/control.cu export-ignore\n*.cu export-subst ident filter=other text eol=crlf\n"
    )
    git(committed, "config", "filter.other.smudge", "sed s/float/double/g")
    commit(committed)
    folder = past(committed)
    assert (folder / SOURCE).read_bytes() == was
    assert (folder / "kernels/control.cu").is_file()


def test_symbolic_links_and_submodules_are_refused_by_name(committed: Path, tmp_path: Path) -> None:
    first = git(committed, "rev-parse", "HEAD")
    (committed / "kernels/link.cuh").symlink_to("../../outside.cuh")
    commit(committed)
    with pytest.raises(PlanError, match=r"kernels/link\.cuh is a symbolic link"):
        past(committed)
    (committed / "kernels/link.cuh").unlink()
    other = tmp_path / "other"
    shutil.copytree(committed, other)
    git(committed, "submodule", "--quiet", "add", str(other), "kernels/sub")
    commit(committed)
    with pytest.raises(PlanError, match="kernels/sub is a submodule"):
        past(committed)
    assert files(past(committed, first))


@pytest.mark.parametrize("revision", ["-", "--all", "-h", "--upload-pack=x", "--output=x", ""])
def test_a_revision_that_reads_as_an_option_is_refused(committed: Path, revision: str) -> None:
    with pytest.raises(PlanError, match="expected a git revision"):
        resolve_revision(find_project(committed), revision)


@pytest.mark.parametrize("revision", ["main:kernels", "main^{tree}", "^main", "main..main", "0" * 40])
def test_what_is_no_commit_is_refused(committed: Path, revision: str) -> None:
    with pytest.raises(PlanError, match="expected a git revision"):
        resolve_revision(find_project(committed), revision)


def test_a_shallow_clone_says_so(committed: Path, tmp_path: Path) -> None:
    first = git(committed, "rev-parse", "HEAD")
    wrong_result(committed)
    second = commit(committed)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{committed}", str(shallow))
    assert resolve_revision(find_project(shallow), "HEAD") == second
    assert files(past(shallow)) == files(past(committed))
    for absent in (first, "HEAD~1"):
        with pytest.raises(PlanError, match="this clone is shallow"):
            resolve_revision(find_project(shallow), absent)


def test_a_dirty_tree_is_compared_with_what_was_committed(committed: Path) -> None:
    was = (committed / SOURCE).read_bytes()
    wrong_result(committed)
    (committed / "kernels/untracked.py").write_text("raise SystemExit")
    git(committed, "add", SOURCE)  # staged is not committed either
    folder = past(committed)
    assert (folder / SOURCE).read_bytes() == was
    assert not (folder / "kernels/untracked.py").exists()


def test_the_environment_leads_nowhere_else(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = resolve_revision(find_project(committed), "HEAD")
    other = tmp_path / "other"
    shutil.copytree(committed, other)
    wrong_result(other)
    commit(other)
    for name, value in (
        ("GIT_DIR", other / ".git"),
        ("GIT_WORK_TREE", other),
        ("GIT_COMMON_DIR", other / ".git"),
        ("GIT_OBJECT_DIRECTORY", other / ".git/objects"),
        ("GIT_INDEX_FILE", other / ".git/index"),
        ("GIT_CEILING_DIRECTORIES", committed.parent),
        ("GIT_CONFIG_PARAMETERS", f"'core.worktree={other}'"),
        ("GIT_PREFIX", "kernels/"),
        ("GIT_NAMESPACE", "x"),
    ):
        monkeypatch.setenv(name, str(value))
        assert resolve_revision(find_project(committed), "HEAD") == expected, name
        assert (past(committed) / SOURCE).read_bytes() == (committed / SOURCE).read_bytes()


def test_a_replaced_object_is_not_taken(committed: Path) -> None:
    was = git(committed, "rev-parse", f"HEAD:{SOURCE}")
    (committed / "other.cu").write_text("// another kernel\n")
    git(committed, "replace", was, git(committed, "hash-object", "-w", "other.cu"))
    assert (past(committed) / SOURCE).read_bytes() == (committed / SOURCE).read_bytes()


def test_a_working_tree_elsewhere_is_refused(committed: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    git(committed, "config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(PlanError, match="in the working tree of a git repository"):
        past(committed)


def test_a_project_in_a_folder_of_its_repository(softmax_project: Path, tmp_path: Path) -> None:
    """Its root is that folder, though the top has a project too; links beside it do not matter."""
    top = tmp_path / "top"
    inner = top / "deep/my project"
    shutil.copytree(softmax_project, inner)
    shutil.copy(inner / "pyproject.toml", top)
    (top / "link").symlink_to("deep")
    git(top, "init", "-q", "-b", "main")
    first = commit(top)
    wrong_result(inner)
    folder = past(inner, first)
    assert files(folder) == files(softmax_project)
    (inner / "pyproject.toml").rename(inner / "aside")
    without = commit(top)
    (inner / "aside").rename(inner / "pyproject.toml")
    with pytest.raises(PlanError, match=r"has no deep/my project/pyproject\.toml"):
        past(inner, without)
    shutil.copytree(softmax_project, top / "new")
    with pytest.raises(PlanError, match="has no folder new"):
        past(top / "new", first)


def test_a_folder_outside_of_git_is_refused(softmax_project: Path) -> None:
    with pytest.raises(PlanError, match="in the working tree of a git repository"):
        past(softmax_project)


def test_a_missing_object_is_named(committed: Path) -> None:
    blob = git(committed, "rev-parse", f"HEAD:{SOURCE}")
    (committed / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(PlanError, match=rf"{SOURCE} of .* is not in this clone"):
        past(committed)
