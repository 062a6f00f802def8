"""The condition of an `#if`, once its macros are expanded."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence

_BINARY: Mapping[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARED: Mapping[type[ast.AST], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_WORDS: Mapping[str, str] = {"&&": " and ", "||": " or ", "/": "//", "true": "1", "false": "0"}
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
_LONGEST = 400


def holds(words: Sequence[str]) -> bool | None:
    """Whether a condition holds; a name that is left counts as 0. None for one that needs a real preprocessor."""
    text = "".join(map(_word, words))
    for mark, word in _WORDS.items():
        text = text.replace(mark, word)
    text = re.sub(r"!(?!=)", " not ", text)
    if not words or len(text) > _LONGEST or "**" in text:
        return None
    try:
        return bool(_value(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        return None


def _word(word: str) -> str:
    if word[0].isdigit():
        number = _NUMBER.fullmatch(word.replace("'", ""))
        return str(int(number[1], 0 if number[1][:2] in ("0x", "0X") else 10)) if number else "?"
    if word[0].isalpha() or word[0] == "_":
        return word if word in _WORDS else "?" if word.startswith("__has_") else "0"
    return word


def _value(node: ast.AST) -> int:
    value = 0
    match node:
        case ast.Constant(value=int(number)):
            value = number
        case ast.BoolOp(op=ast.And(), values=values):
            value = int(all(_value(one) for one in values))
        case ast.BoolOp(values=values):
            value = int(any(_value(one) for one in values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = int(not _value(operand))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = -_value(operand)
        case ast.BinOp(left=left, op=mark, right=right) if type(mark) in _BINARY:
            value = _BINARY[type(mark)](_value(left), _value(right))
        case ast.Compare(left=left, ops=[mark], comparators=[right]) if type(mark) in _COMPARED:
            value = int(_COMPARED[type(mark)](_value(left), _value(right)))
        case _:
            raise ValueError("an expression that is not understood")
    return value
