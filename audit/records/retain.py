"""Retained records: a copy of the folder without its pages, with record and plan compressed.

`audit report` renders the pages again. The statement stays unchanged, so that a signature over it stays valid, and
signatures are copied. SHA256SUMS lists the files that are kept. Every reader accepts both forms.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from audit.errors import EvidenceError
from audit.records import folder, packing, signature
from audit.records.kinds import kind_in
from audit.records.statement import STATEMENT


def retain(home: Path, kept: Path) -> Path:
    """Copy a record's folder into the folder `kept` under its own name. Returns the new folder; the original stays.

    Raises EvidenceError if the folder is altered or incomplete, or if the name exists in `kept`.
    """
    folder.require_outside(kept, "another folder with --into")
    record_files = kind_in(home).files
    files = {name: content for name, content in folder.verified(home).items() if name in (*record_files, STATEMENT)}
    packed = packing.packed(files, record_files)
    own_name = home.resolve().name
    final, partial = kept / own_name, kept / f".{own_name}.partial"
    if final.exists():
        raise EvidenceError(f"{final}: exists, and a record is never overwritten; verify it or move it away")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, content in {**packed, **signature.signatures(home)}.items():
            folder.write_file(partial / name, content)
        folder.write_file(partial / folder.SUMS, folder.sums(packed))
        folder.flush_folder(partial)
        partial.rename(final)
        folder.flush_folder(kept)
    except OSError as error:
        raise EvidenceError(f"{final}: could not be written ({error.strerror}); make the folder writable") from None
    return final
