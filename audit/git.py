"""Runs git in the repository that a folder lies in, wherever the user's environment points.

Variables such as GIT_DIR or GIT_INDEX_FILE (git sets them in a hook) would lead to another repository, and a
replacement of an object to other content: none of them holds here.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SECONDS = 120


def git(folder: Path, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """A finished git command. Raises FileNotFoundError without git, subprocess.TimeoutExpired after two minutes."""
    return subprocess.run(
        ["git", *words], cwd=folder, input=stdin, capture_output=True, timeout=_SECONDS, check=False, env=environment()
    )


def environment() -> dict[str, str]:
    """The environment of every git command: the user's without any variable of git, and its messages in English."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
