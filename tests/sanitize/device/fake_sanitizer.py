"""Stands in for compute-sanitizer: takes its options, runs its target for real, and writes what was recorded.

FAKE_SANITIZER names the recording whose log and XML it writes; `deaf` never ends, `silent` writes empty ones.
FAKE_RELEASE is the version whose options it knows.
"""

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

RECORDINGS = Path(__file__).resolve().parents[3] / "fixtures/sanitizers/device"
RELEASE = os.environ["FAKE_RELEASE"]
HELP = (RECORDINGS / f"help-{RELEASE}.txt").read_text()
FLAGS = ("--xml", "--check-cache-control")


def main(words: list[str]) -> int:
    if words == ["--version"]:
        print(f"NVIDIA (R) Compute Sanitizer\nVersion {RELEASE} (build 1)")
        return 0
    if words == ["--help"]:
        print(HELP)
        return 0
    given = {}
    while words[0].startswith("--"):
        option = words.pop(0)
        if option not in HELP.split():
            print(f"unrecognised option '{option}'", file=sys.stderr)
            return 255
        given[option] = "" if option in FLAGS else words.pop(0)
    name = os.environ["FAKE_SANITIZER"]
    Path(given["--log-file"]).write_text("========= COMPUTE-SANITIZER\n")
    if name == "deaf":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(given["--save"]).with_name("child").write_text(str(child.pid))
        time.sleep(600)
    code = subprocess.run(words, check=False).returncode
    log, xml = recorded(name, "log.txt"), recorded(name, "records.xml")
    if code and "Target application returned an error" not in log:
        *before, summary = log.splitlines(keepends=True) or [""]
        log = "".join([*before, "========= Target application returned an error\n", summary])
    Path(given["--log-file"]).write_text(log)
    Path(given["--save"]).write_text(xml)
    return code if name == "silent" else json.loads((RECORDINGS / name / "how.json").read_text())["exit_code"] or code


def recorded(name: str, file: str) -> str:
    path = RECORDINGS / name / file
    packed = path.with_name(f"{file}.gz")
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode()
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
