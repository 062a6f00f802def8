"""Damage to files, drawn from a seed: flips, cuts, splices, other types, other numbers, depth, duplicate names."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 2**70, -(2**63) - 1, 1.5, 1e300, -0.0, "", "\x00", "x\x1b[2J\u202e", "x" * 5000),
    *("../../../etc/passwd", "::error::x", "NaN", "1e999", "1969-12-31T23:59:59+00:00", "9999-12-31T23:59:59+00:00"),
    *(
        "99999-01-01",
        [],
        {},
        [[]],
        {"": {}},
        [None, 1, "a"],
        {"a": [1, {"b": None}]},
        "ffffffffffffffff",
        "7ff0000000000000",
    ),
)
TOKENS = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b'"\\ud800"', b"\n", b"\r\n"),
    *(
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'"a":1,"a":2,',
        b"=" * 9,
        b"<!DOCTYPE x>",
        b"<a>" * 2000,
        b"(",
        b"0-999999999",
    ),
    *(b"\xe2\x80\xae", b" " * 10_000, b"{", b"}", b'"', b"\\", b"-", b"launch 1 2\n", b"error kernel \n", "٣".encode()),
)


def damaged(content: bytes, seed: int) -> bytes:
    """A file with one to four things wrong; what is JSON is damaged as a document as often as in its bytes."""
    rng = random.Random(seed)
    if content[:1] == b"{" and rng.random() < 0.7:  # whole documents reach further than broken ones
        return _document(content, rng)
    for _ in range(rng.randint(1, 4)):
        ways: list[Callable[[bytes, random.Random], bytes]] = [_flip, _cut, _remove, _repeat, _insert, _number, _line]
        if content[:1] == b"{":
            ways = [rng.choice(ways), _document, _twice]
        content = rng.choice(ways)(content, rng)
    return content


def _at(content: bytes, rng: random.Random) -> int:
    return rng.randint(0, len(content))


def _flip(content: bytes, rng: random.Random) -> bytes:
    at = _at(content, rng)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: _at(content, rng)]


def _remove(content: bytes, rng: random.Random) -> bytes:
    at = _at(content, rng)
    return content[:at] + content[at + rng.randint(1, 64) :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    at, other = _at(content, rng), _at(content, rng)
    return content[:at] + content[other : other + rng.randint(1, 256)] + content[at:]


def _insert(content: bytes, rng: random.Random) -> bytes:
    at = _at(content, rng)
    return content[:at] + rng.choice(TOKENS) + content[at:]


def _number(content: bytes, rng: random.Random) -> bytes:
    digits = [at for at, byte in enumerate(content[: 1 << 16]) if byte in b"0123456789"]
    if not digits:
        return content
    at = rng.choice(digits)
    return (
        content[:at]
        + rng.choice([b"-1", b"1e999", b"99999999999999999999", b"0", b"1.5", b"9" * 5000])
        + content[at + 1 :]
    )


def _line(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at : at + 1] = rng.choice([[], [lines[at]] * 2, [lines[at], rng.choice(TOKENS)], [rng.choice(lines)]])
    return b"\n".join(lines)


def _twice(content: bytes, rng: random.Random) -> bytes:
    """A name of an object a second time, right behind its brace."""
    braces = [at for at, byte in enumerate(content[: 1 << 16]) if byte == ord("{")]
    names = content.split(b'"')[1:200:2]
    if not braces or not names:
        return content
    at = rng.choice(braces) + 1
    return content[:at] + b'"' + rng.choice(names) + b'": 1, ' + content[at:]


def _document(content: bytes, rng: random.Random) -> bytes:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content
    items: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting and len(items) < 5000:
        each = waiting.pop()
        for key, value in list(each.items() if isinstance(each, dict) else enumerate(each)):
            items.append((each, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    for holder, key in rng.sample(items, min(len(items), rng.randint(1, 3))):
        other, there = rng.choice(items)
        how = rng.randrange(5)
        if how == 0 and isinstance(holder, dict):
            holder.pop(key, None)
        elif how == 1 and isinstance(holder, dict) and key in holder:
            holder[str(rng.choice(VALUES))[:300]] = holder.pop(key)
        elif how == 2 and _has(other, there) and _has(holder, key):
            holder[key] = json.loads(json.dumps(other[there])) if other[there] is not holder else 1
        elif _has(holder, key):
            alike = [value for value in VALUES if type(value) is type(holder[key])]
            holder[key] = rng.choice(alike if alike and how else VALUES)
    try:
        return json.dumps(document).encode()
    except (ValueError, RecursionError):
        return content


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)
