"""Signatures with real keys: over the whole record, by allowed signers alone; the gate counts nothing unsigned."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.errors import EvidenceError, ProjectError
from audit.gate.policy import load_policy
from audit.gate.run import gate
from audit.project import Project, find_project
from audit.records import folder as folders
from audit.records import run as run_record
from audit.records import statement
from audit.records.retain import retain
from audit.records.signature import SIGNATURE, sign
from audit.records.verify import find_records, verify

from ..conftest import Ran
from ..gate import made
from ..gate.conftest import project, whole
from ..gate.test_decision import fails
from ..records.test_verify import sealed

__all__ = ["project", "whole"]  # fixtures
pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen makes the keys")


class Keys:
    """Two people of this world: one is allowed, the other is not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own, self.other = self.make("own"), self.make("other")
        self.allowed = self.allow("own")

    def make(self, name: str, *words: str) -> Path:
        key = self.folder / name
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key), *words]
        subprocess.run(command, check=True, capture_output=True)
        return key

    def allow(self, name: str, options: str = "") -> Path:
        public = (self.folder / f"{name}.pub").read_text().strip()
        allowed = self.folder / "allowed_signers"
        allowed.write_text(f"{name}@example.org {options} {public}\n")
        return allowed


@pytest.fixture
def keys(project: Project) -> Keys:
    """Kept in the project, where a policy may name them."""
    folder = project.root / "keys"
    folder.mkdir()
    return Keys(folder)


def homes(project: Project) -> tuple[Path, ...]:
    return tuple(home for below in ("reports", "given") for home in find_records(project.root / below))


def test_a_signed_record_names_its_signer(project: Project, keys: Keys) -> None:
    for home in homes(project):
        assert verify(home, project, keys.allowed).verdict == "inconclusive"
        assert sign(home, keys.own) == home / SIGNATURE
        found = verify(home, project, keys.allowed)
        assert (found.verdict, found.signer) == ("pass", "own@example.org")
        kept = retain(home, project.root / "kept")
        assert (kept / SIGNATURE).read_bytes() == (home / SIGNATURE).read_bytes()
        assert verify(kept, project, keys.allowed).signer == "own@example.org"
        assert verify(home, project).verdict == "pass"


def test_a_signature_covers_the_whole_record(project: Project, keys: Keys) -> None:
    """A record that agrees with itself, its statement made anew, under the signature of the one before."""
    (home,) = find_records(project.root / "reports")
    sign(home, keys.own)
    record = run_record.KIND.load(home)
    signature = (home / SIGNATURE).read_bytes()
    (home / SIGNATURE).unlink()
    other = made.rewrite(home, lambda old: msgspec.structs.replace(old, started="2026-11-02T10:00:00+00:00"))
    assert verify(other, project).verdict == "pass"
    assert run_record.KIND.load(other).started != record.started
    (other / SIGNATURE).write_bytes(signature)
    found = verify(other, project, keys.allowed)
    assert (found.verdict, found.signer, found.sound) == ("fail", "", False)
    assert "wrong signature" in found.describe()


def test_an_old_statement_does_not_lend_its_signature(project: Project, keys: Keys) -> None:
    (home,) = find_records(project.root / "reports")
    sign(home, keys.own)
    signature, about = (home / SIGNATURE).read_bytes(), (home / "statement.json").read_bytes()
    (home / SIGNATURE).unlink()
    other = made.rewrite(home, fails)
    sealed(other, statement_json=about)
    (other / SIGNATURE).write_bytes(signature)
    assert {flaw.kind for flaw in verify(other, project, keys.allowed).flaws} == {"contradictory"}


def signed_with(home: Path, key: Path, namespace: str) -> None:
    command = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", namespace]
    content = (home / "statement.json").read_bytes()
    done = subprocess.run(command, input=content, check=True, capture_output=True)
    (home / SIGNATURE).write_bytes(done.stdout)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda home, keys: signed_with(home, keys.other, "kernel-audit"),
        lambda home, keys: signed_with(home, keys.own, "git"),
        lambda home, keys: (sign(home, keys.own), keys.allow("other")),
        lambda home, keys: (sign(home, keys.own), keys.allow("own", 'namespaces="git"')),
        lambda home, keys: (sign(home, keys.own), keys.allow("own", 'valid-before="20200101"')),
        lambda home, keys: (sign(home, keys.own), keys.allowed.write_text("")),
        lambda home, _keys: (home / SIGNATURE).write_text(""),
        lambda home, _keys: (home / SIGNATURE).write_text("-----BEGIN SSH SIGNATURE-----\n"),
        lambda home, _keys: (home / SIGNATURE).write_bytes(os.urandom(300)),
        lambda home, _keys: (home / SIGNATURE).mkdir(),
        lambda home, keys: (home / SIGNATURE).symlink_to(keys.own),
    ],
)
def test_a_wrong_signature_fails(project: Project, keys: Keys, wrong: Callable[[Path, Keys], object]) -> None:
    (home,) = find_records(project.root / "reports")
    wrong(home, keys)
    found = verify(home, project, keys.allowed)
    assert (found.verdict, found.signer) == ("fail", "")
    assert "wrong signature" in found.describe()


def test_every_flipped_byte_of_a_signature_fails(project: Project, keys: Keys) -> None:
    (home,) = find_records(project.root / "reports")
    content = sign(home, keys.own).read_bytes()
    for at in range(0, len(content), 23):
        (home / SIGNATURE).write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        assert verify(home, project, keys.allowed).verdict == "fail", at


def test_what_cannot_be_signed(project: Project, keys: Keys) -> None:
    (home,) = find_records(project.root / "reports")
    with pytest.raises(EvidenceError, match="expected a private key file"):
        sign(home, keys.folder / "nowhere")
    with pytest.raises(EvidenceError, match="ssh-keygen signed nothing"):
        sign(home, keys.allowed)
    assert not (home / SIGNATURE).exists()
    sign(home, keys.own)
    with pytest.raises(EvidenceError, match="signed already"):
        sign(home, keys.other)
    (home / "statement.json").unlink()
    (home / SIGNATURE).unlink()
    with pytest.raises(EvidenceError, match="has no statement"):
        sign(home, keys.own)


def test_the_commands(project: Project, keys: Keys, audit_here: Callable[..., Ran]) -> None:
    (home,) = find_records(project.root / "reports")
    verified = ("verify", "reports", "given", "--signed-by", "keys/allowed_signers")
    assert audit_here(project.root, *verified).code == 3
    signed = audit_here(project.root, "sign", "reports", "given", "--key", "keys/own")
    assert (signed.code, len(signed.out.splitlines())) == (0, len(homes(project)))
    again = audit_here(project.root, "sign", "reports", "given", "--key", "keys/other")
    assert (again.code, again.out, again.err.count("has a signature")) == (0, "", len(homes(project)))
    ran = audit_here(project.root, *verified)
    assert (ran.code, ran.out.count("signed by own@example.org")) == (0, len(homes(project)))
    ran = audit_here(project.root, *verified, "--json")
    assert {one["signer"] for one in ran.json["evidence"]} == {"own@example.org"}
    keys.allow("other")
    assert audit_here(project.root, *verified).code == 1
    assert audit_here(project.root, "verify", "reports", "--signed-by", "nowhere").code == 2
    (home / SIGNATURE).unlink()
    (home / "plan.json").write_bytes(b"{}")
    refused = audit_here(project.root, "sign", "reports", "--key", "keys/own")
    assert (refused.code, refused.out) == (1, "")
    assert "not signed" in refused.err
    assert not (home / SIGNATURE).exists()


def test_without_ssh_keygen_nothing_is_valid(
    project: Project, keys: Keys, audit_here: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(find_records(project.root / "reports")[0], keys.own)
    monkeypatch.setenv("PATH", "")
    ran = audit_here(project.root, "verify", "reports", "--signed-by", "keys/allowed_signers")
    assert ran.code == 2
    assert "openssh-client" in ran.err


def with_policy(project: Project, value: str) -> Project:
    settings = project.root / "pyproject.toml"
    table = "[tool.kernel-audit.gate.everyday]"
    settings.write_text(settings.read_text().replace(table, f"{table}\nsigned-by = {json.dumps(value)}"))
    return find_project(project.root)


def judged(project: Project) -> tuple[str, dict[str, str]]:
    found = gate(project, "everyday", given=[project.root / "given"])
    return found.verdict, made.wrong(found)


def test_the_gate_counts_no_unsigned_record(project: Project, keys: Keys) -> None:
    assert judged(project) == ("pass", {})
    signed = with_policy(project, "keys/allowed_signers")
    (retained,) = find_records(project.root / "reports")
    verdict, wrong = judged(signed)
    assert verdict == "inconclusive"
    assert wrong[f"evidence {retained.name}"] == wrong["audits softmax on cuda"] == "inconclusive"
    for home in homes(project):
        sign(home, keys.own)
    assert judged(signed) == ("pass", {})
    (retained / SIGNATURE).unlink()
    signed_with(retained, keys.other, "kernel-audit")
    verdict, wrong = judged(signed)
    assert (verdict, wrong[f"evidence {retained.name}"]) == ("fail", "fail")


@pytest.mark.parametrize("value", ["", "nowhere", "../allowed_signers", "/etc/hosts", "keys"])
def test_a_policy_names_a_file_of_the_project(project: Project, keys: Keys, value: str) -> None:
    shutil.copy(keys.allowed, project.root.parent / "allowed_signers")
    with pytest.raises(ProjectError, match=r"signed-by|signed_by"):
        load_policy(with_policy(project, value), "everyday")


def test_the_statement_names_every_file_that_is_evidence(project: Project) -> None:
    for home in homes(project):
        about = json.loads((home / statement.STATEMENT).read_bytes())
        names = set(folders.listed(home)) - {statement.STATEMENT}
        assert {name for name in names if not folders.is_rendered(name)} <= set(about["predicate"]["files"])
