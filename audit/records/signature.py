"""Signatures over a record's statement, by `ssh-keygen -Y`: a key file and no network.

The statement names the digests of every file that is evidence, so a signature over it covers the whole record. Without
one a record shows accidents: anybody who can write it can write another that agrees with itself.

`ssh-keygen(1)` describes the format and the file of allowed signers, one line each: `name@host ssh-ed25519 AAAA...`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from audit.errors import EvidenceError, ToolMissing
from audit.records import folder
from audit.records.statement import STATEMENT

SIGNATURE = f"{STATEMENT}.sig"
NAMESPACE = "kernel-audit"
_SECONDS = 120  # somebody may type a passphrase


def sign(home: Path, key: Path) -> Path:
    """Sign the statement of a record with a private key; the file of the signature.

    Verify the record before: what is signed is what the statement says. Raises EvidenceError where there is no
    statement, a signature already, or a key that cannot sign.
    """
    signature = home / SIGNATURE
    if is_signed(home):
        raise EvidenceError(f"{signature}: the record is signed already; move that signature away to sign again")
    if not key.is_file():
        raise EvidenceError(f"{key}: expected a private key file; `ssh-keygen -t ed25519 -f FILE` makes one")
    statement = folder.read_listed(home, STATEMENT)
    if statement is None:
        raise EvidenceError(f"{home}: has no {STATEMENT}, as records of older versions; make it anew, then sign it")
    done = _ssh_keygen(["-Y", "sign", "-f", str(key.resolve()), "-n", NAMESPACE], statement)
    if done.returncode != 0 or not done.stdout:
        raise EvidenceError(f"{key}: ssh-keygen signed nothing with it: {_reason(done)}")
    try:
        folder.write_file(signature, done.stdout)
    except OSError as error:
        signature.unlink(missing_ok=True)
        raise EvidenceError(f"{signature}: could not be written ({error.strerror})") from None
    return signature


def is_signed(home: Path) -> bool:
    """Whether a record has a signature, of whomever and over whatever."""
    return os.path.lexists(home / SIGNATURE)


def signer(home: Path, allowed: Path) -> str:
    """Who of the allowed signers signed the statement of a record.

    Raises EvidenceError where the signature is of nobody among them, or not one over this statement.
    """
    statement, signature = folder.read_listed(home, STATEMENT), home / SIGNATURE
    if statement is None or folder.read_listed(home, SIGNATURE) is None:
        raise EvidenceError(f"{signature}: expected a plain file beside a {STATEMENT}")
    reason = ""
    for name in _principals(signature, allowed):
        command = ["-Y", "verify", "-f", str(allowed), "-I", name, "-n", NAMESPACE, "-s", str(signature)]
        done = _ssh_keygen(command, statement)
        if done.returncode == 0:
            return name
        reason = _reason(done)
    if reason:
        raise EvidenceError(f"{signature}: is not over this statement, or the signer may not sign it: {reason}")
    raise EvidenceError(f"{signature}: is by none of the allowed signers of {allowed}")


def require_signers(allowed: Path) -> None:
    """Raise EvidenceError where there is no file of allowed signers, ToolMissing where nothing can verify."""
    if not allowed.is_file():
        raise EvidenceError(f"{allowed}: expected a file of allowed signers, a line each: `name ssh-ed25519 AAAA...`")
    _ssh_keygen(["-?"])


def signatures(home: Path) -> dict[str, bytes]:
    """Every plain file that lies beside the statement as a signature of it, by name."""
    names = (file.name for file in sorted(home.iterdir()) if file.name.startswith(f"{STATEMENT}."))
    found = {name: folder.read_listed(home, name) for name in names}
    return {name: content for name, content in found.items() if content is not None}


def _principals(signature: Path, allowed: Path) -> Iterator[str]:
    done = _ssh_keygen(["-Y", "find-principals", "-s", str(signature), "-f", str(allowed)])
    if done.returncode == 0:
        for line in done.stdout.decode(errors="replace").splitlines():
            yield from (name.strip() for name in line.split(",") if name.strip())


def _ssh_keygen(words: Sequence[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *words], input=stdin, capture_output=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise ToolMissing(
            "signatures need ssh-keygen on PATH (Debian, Ubuntu: `apt-get install openssh-client`)"
        ) from None
    except subprocess.TimeoutExpired:
        raise EvidenceError(f"ssh-keygen {' '.join(words[:2])}: no answer in {_SECONDS} s") from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    text = (done.stderr or done.stdout).decode(errors="replace").strip()
    return text.splitlines()[-1] if text else f"exit status {done.returncode}"
