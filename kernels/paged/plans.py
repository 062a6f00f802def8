"""The default plans of the paged operators: written lists, small enough to run on two cores within a minute."""

from collections.abc import Iterable

from audit import Line

_SHORT = (1, 31, 32, 33, 63, 64, 65, 128, 129)
_PAGED = ((1649, 1648), (3297, 3296), (5057, 1648), (8197, 3296))
_LONG = ((32_768, 1648), (131_072, 3296), (261_888, 1648))
_LAYERS, _RANKS = (0, 18, 28), (0, 1, 2)

CAPTURES = tuple(f"smollm2-135m/layer{layer}/rank{rank}" for layer in _LAYERS for rank in _RANKS)

LAYOUTS = (
    Line({"context": 129, "layout": "padded", "base": 8, "q_offset": 1}),
    Line({"context": 129, "placement": "far", "q_offset": 4}),
    Line({"context": 3297, "page": 3296, "layout": "interleaved", "q_offset": 7}, first_step_only=True),
)

MANY_TILES = Line({"context": 24_577, "page": 3296, "heads": 3, "dim": 64}, first_step_only=True)
"""Nine or ten tiles a split, so that a kernel with several tiles in flight must reuse its buffers."""

REPLAYED = Line({"context": 4096, "page": 1648, "lengths": "replayed"})
"""A graph captured at 128 tokens also serves 127, 129 and 4,096 tokens: see `inputs.steps`."""


def contexts(first_steps_from: int, capacity: int) -> tuple[Line, ...]:
    """Every context of the default plan, with only the live step from `first_steps_from` tokens on. `--full` adds the
    longest contexts, up to the capacity."""
    return (
        *(Line({"context": context}) for context in _SHORT),
        *(
            Line({"context": context, "page": page}, first_step_only=context >= first_steps_from)
            for context, page in _PAGED
        ),
        *(
            Line({"context": context, "page": page}, first_step_only=True, full=True)
            for context, page in (*_LONG, (capacity, 3296))
        ),
    )


def probes(named: Iterable[tuple[str, int]]) -> tuple[Line, ...]:
    """Each probe at its context, the live step only, in pages of 16 tokens, or of 1,648 where the context is longer."""
    return tuple(
        Line({"context": context, "page": 1648 if context > 1648 else 16}, probe=name, first_step_only=True)
        for name, context in named
    )


SANITIZED = (
    Line({"context": 65, "heads": 3, "dim": 64, "layout": "padded", "base": 8, "q_offset": 1}),
    Line({"context": 300, "page": 1648}, first_step_only=True),
    Line({"context": 97}, capture="smollm2-135m/layer18/rank0", first_step_only=True),
)
"""The cases for sanitizers: a small case with all steps, one of the headline geometry with several tiles in a split,
and the first tokens of a capture."""
