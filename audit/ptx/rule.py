"""How a table says what an instruction does: a pattern of mnemonics, the types of its operands, and an expression.

    ("add{.rn,}{.ftz,}{.sat,}.f32", "f32 = f32 f32", "$3($2(canonical($2({0}) + $2({1}))))")

`{.rn,}` is a choice; the pattern above has eight mnemonics, and no others match. `$2` is the second choice without its
dot. `{0}` is the first source, read as its type. The result is converted to the type on the left of `=`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

Emit = Callable[..., str]
"""Writes the C++ of an instruction, from an emitter, the instruction and the choices that its mnemonic makes."""

_CHOICE = re.compile(r"\{([^{}]*)\}")


class Rule(msgspec.Struct, frozen=True):
    """A pattern of mnemonics, and either a signature with an expression or a function that writes the C++."""

    pattern: str
    signature: str = ""
    code: str = ""
    emit: Emit | None = None

    @property
    def head(self) -> str:
        """The opcode, with which a look-up begins."""
        return re.split(r"[.{]", self.pattern, maxsplit=1)[0]

    def regex(self) -> re.Pattern[str]:
        """What matches exactly the mnemonics of the pattern, with a group for each choice."""
        parts, at = [], 0
        for choice in _CHOICE.finditer(self.pattern):
            parts.append(re.escape(self.pattern[at : choice.start()]))
            parts.append(f"({'|'.join(map(re.escape, choice[1].split(',')))})")
            at = choice.end()
        return re.compile("".join(parts) + re.escape(self.pattern[at:]))

    def mnemonics(self) -> Iterator[str]:
        """Every mnemonic of the pattern."""
        pieces = _CHOICE.split(self.pattern)
        choices = [piece.split(",") if number % 2 else [piece] for number, piece in enumerate(pieces)]
        return ("".join(parts) for parts in itertools.product(*choices))


def rules(lines: Sequence[tuple[str, str, str]]) -> tuple[Rule, ...]:
    """The rules that lines of a table describe."""
    return tuple(Rule(pattern, signature, code) for pattern, signature, code in lines)


def filled(text: str, choices: Sequence[str]) -> str:
    """The text with `$1`, `$2` ... replaced by the choices, without their dots."""
    return re.sub(
        r"\$(\d)", lambda match: choices[int(match[1]) - 1].lstrip(".").replace("::", "_").replace(".", "_"), text
    )
