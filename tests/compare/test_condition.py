"""The conditions of `#if`."""

from __future__ import annotations

import pytest

from audit.compare.condition import holds


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("1", True), ("0", False), ("0x10u == 16UL", True), ("! 0", True), ("! 1 || 2 > 1", True),
        ("( 3 + 1 ) / 2 == 2 && 7 % 4 == 3", True), ("unknown", False), ("unknown >= 800", False), ("- 1 < 0", True),
        ("1 / 0", None), ("__has_include ( x )", None), ("f ( 1 )", None), ("", None), ("1 ? 2 : 3", None),
        ("2 ** 3", None), ("'a' == 97", None), ("true", True), ("1 != 1", False),
    ],
)  # fmt: skip
def test_a_condition(words: str, expected: bool | None) -> None:
    marks = {"&&": "& &", "||": "| |", ">=": "> =", "==": "= =", "!=": "! =", "**": "* *"}
    listed = [mark for word in words.split() for mark in marks.get(word, word).split()]
    assert holds(listed) is expected
