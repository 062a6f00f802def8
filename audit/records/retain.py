"""Evidence that is to be kept: the same folder in another place, its record and plan compressed to a fiftieth.

SHA256SUMS lists what lies there. Every other file, the statement among them, stays as it is: it speaks of what the
record holds. Whatever reads evidence reads both forms.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from audit.errors import EvidenceError
from audit.records import folder, packing
from audit.records.statement import STATEMENT


def retain(home: Path, kept: Path) -> Path:
    """Copy a folder of evidence into the folder `kept`, under its name; the new folder. The original stays.

    Raises EvidenceError where it is not unaltered, or there is one of that name.
    """
    files = folder.verified(home)
    records = [name for name in files if name.endswith(".json") and name != STATEMENT]
    lying = packing.packed(files, records)
    final, partial = kept / home.name, kept / f".{home.name}.partial"
    if final.exists():
        raise EvidenceError(f"{final}: is there already; evidence is never overwritten")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, content in lying.items():
            folder.write(partial / name, content)
        folder.write(partial / folder.SUMS, folder.sums(lying))
        folder.flush_folder(partial)
        partial.rename(final)
        folder.flush_folder(kept)
    except OSError as error:
        raise EvidenceError(f"{final}: could not be written ({error.strerror})") from None
    return final
