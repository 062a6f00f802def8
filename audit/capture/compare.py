"""Compares a set recorded again with the stored one, payload by payload."""

from __future__ import annotations

import msgspec

from audit.capture.store import CaptureStore


class Difference(msgspec.Struct, frozen=True):
    """One difference between two sets: where it is, the stored value, the new value, and its size."""

    where: str
    stored: str
    new: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.where}: stored {self.stored}, now {self.new}{f' ({self.detail})' if self.detail else ''}"


def compare_sets(stored: CaptureStore, again: CaptureStore, name: str) -> tuple[Difference, ...]:
    """Every difference between the set `name` in two stores; empty if all payloads, scales and origins agree.

    The environment (versions, instruction set) is not compared: it may explain a difference but is not one itself.
    Raises CaptureError if either set is damaged.
    """
    (old, _), (new, _) = stored.manifest(name), again.manifest(name)
    differences = [
        Difference(field, str(getattr(old, field)), str(getattr(new, field)))
        for field in ("model", "text", "tokens", "geometry", "rules", "expected")
        if getattr(old, field) != getattr(new, field)
    ]
    ids = [{f"{name}/layer{r.layer}/rank{r.rank}" for r in manifest.records} for manifest in (old, new)]
    for id in sorted(ids[0] ^ ids[1]):  # noqa: A001
        differences.append(Difference(id, *(("present", "absent") if id in ids[0] else ("absent", "present"))))
    for id in sorted(ids[0] & ids[1]):  # noqa: A001
        differences += _payloads(stored, again, id)
    return tuple(differences)


def _payloads(stored: CaptureStore, again: CaptureStore, id: str) -> list[Difference]:  # noqa: A002
    old, new = stored.load(id), again.load(id)
    differences = [
        Difference(f"{id}/{scale}", repr(value), repr(new.scales[scale]))
        for scale, value in old.scales.items()
        if value != new.scales[scale]
    ]
    for tensor, array in old.arrays.items():
        shas = old.payload_sha256[tensor], new.payload_sha256[tensor]
        if shas[0] != shas[1]:
            other = new.arrays[tensor]
            detail = "other shapes"
            if array.shape == other.shape:
                bits = f"u{array.itemsize}"
                changed = int((array.view(bits) != other.view(bits)).sum())
                detail = f"{changed:,} of {array.size:,} elements"
            differences.append(Difference(f"{id}/{tensor}", shas[0], shas[1], detail))
    return differences
