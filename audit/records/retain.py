"""Evidence to keep: a copy of the folder without its pages, its record and plan compressed.

`audit report` renders the pages again. The statement stays as it is, so that a signature over it holds; signatures are
copied, too. SHA256SUMS lists what is kept. Whatever reads evidence reads both forms.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from audit.errors import EvidenceError
from audit.records import folder, packing, signature
from audit.records.kinds import kind_in
from audit.records.statement import STATEMENT


def retain(home: Path, kept: Path) -> Path:
    """Copy a folder of evidence into the folder `kept`, under its name; the new folder. The original stays.

    Raises EvidenceError where it is not unaltered, or there is one of that name.
    """
    folder.require_outside(kept, "another folder with --into")
    evidence = kind_in(home).files
    files = {name: content for name, content in folder.verified(home).items() if name in (*evidence, STATEMENT)}
    lying = packing.packed(files, evidence)
    name = home.resolve().name
    final, partial = kept / name, kept / f".{name}.partial"
    if final.exists():
        raise EvidenceError(f"{final}: is there already; evidence is never overwritten")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for each, content in {**lying, **signature.signatures(home)}.items():
            folder.write(partial / each, content)
        folder.write(partial / folder.SUMS, folder.sums(lying))
        folder.flush_folder(partial)
        partial.rename(final)
        folder.flush_folder(kept)
    except OSError as error:
        raise EvidenceError(f"{final}: could not be written ({error.strerror})") from None
    return final
