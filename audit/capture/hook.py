"""Seeing what a live model gives to its attention, and proving that it was seen.

transformers looks up both the attention function and the *mask* function by the implementation's name. An
implementation registered for the first alone gets no mask at all, and a step of several rows then silently
attends to its own future. So both are registered, the mask is compared with the causal one, and the
model's answers are compared with those of the library's own attention.
"""

from __future__ import annotations

import copy
import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from audit.capture.manifest import Proof
from audit.errors import CaptureError

IMPLEMENTATION = "kernel_audit_capture"
STOCK = "sdpa"
OTHER = "eager"
"""Computes attention by other code, so that it can contradict."""

ATTENTION_TOLERANCE = 1e-5
UNCACHED_TOLERANCE = 1e-4
"""Relative to the largest value: float32 work of one model, summed in another order."""


class LayerCall(msgspec.Struct, frozen=True, eq=False):
    """What one layer's attention was given in the step: q f32 [heads, rows, D], k and v f32 [ranks, tokens, D]."""

    q: NDArray[np.float32]
    k: NDArray[np.float32]
    v: NDArray[np.float32]
    scale: float
    output: NDArray[np.float32]
    """What the library's attention made of it, f32 [rows, heads, D]."""


class HookRecord(msgspec.Struct, frozen=True, eq=False):
    """The tensors of the wanted layers, and what proves that they are the model's."""

    layers: dict[int, LayerCall]
    proof: Proof


class Attention:
    """The registered attention function: checks, counts and keeps what passes through, then does the stock work."""

    def __init__(self, stock: Any, wanted: Sequence[int], heads: tuple[int, int, int]) -> None:
        self._stock = stock
        self._wanted = frozenset(wanted)
        self._heads = heads
        self.phase = ""
        self.queries = 0
        self.tokens = 0
        self.calls: Counter[tuple[str, int]] = Counter()
        self.seen: dict[int, LayerCall] = {}

    def begin(self, phase: str, queries: int, tokens: int) -> None:
        """Announce the next forward pass: its query rows and all tokens that it may see."""
        self.phase, self.queries, self.tokens = phase, queries, tokens

    def __call__(
        self, module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        layer = int(module.layer_idx)
        where = f"layer {layer}, {self.phase}"
        query_heads, kv_heads, dim = self._heads
        _require(where, "q", (1, query_heads, self.queries, dim), tuple(query.shape))
        for name, tensor in (("k", key), ("v", value)):
            _require(where, name, (1, kv_heads, self.tokens, dim), tuple(tensor.shape))
        self._require_causal(where, attention_mask)
        self.calls[self.phase, layer] += 1
        output, weights = self._stock(module, query, key, value, attention_mask, **kwargs)
        if self.phase == "step" and layer in self._wanted:
            q, k, v, o = (t.detach()[0].float().numpy().copy() for t in (query, key, value, output))
            self.seen[layer] = LayerCall(q, k, v, float(kwargs["scaling"]), o)
        return output, weights

    def _require_causal(self, where: str, mask: Any) -> None:
        """The mask must be the causal one. None means exactly that in a whole pass and for one row, nowhere else."""
        import torch

        if mask is None:
            if self.queries not in (1, self.tokens):
                raise CaptureError(f"{where}: expected a causal mask, but got none: rows would see their own future")
            return
        columns, rows = torch.arange(self.tokens), torch.arange(self.queries)
        causal = columns[None, :] <= (self.tokens - self.queries + rows)[:, None]
        _require(where, "mask", (1, 1, *causal.shape), tuple(mask.shape))
        allowed = mask[0, 0] if mask.dtype == torch.bool else mask[0, 0] == 0
        if not torch.equal(allowed, causal):
            raise CaptureError(f"{where}: mask: expected the causal one, but got another")


def observe(model: Any, ids: Sequence[int], *, rows: int, layers: Sequence[int]) -> HookRecord:
    """Prefill all of `ids` but the last `rows`, run these as one verification step, and return what was seen.

    `model` is a transformers causal language model in float32 on the CPU. Raises CaptureError where the hook
    was not hit exactly once a layer and pass, or where any proof fails.
    """
    import torch

    config = model.config
    depth, kv_heads = config.num_hidden_layers, config.num_key_value_heads
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    tokens = torch.tensor([list(ids)])
    prefill, step = tokens[:, :-rows], tokens[:, -rows:]
    with torch.inference_mode():
        model.set_attn_implementation(STOCK)
        stock, _ = _two_passes(model, prefill, step)
        with _registered(layers, (config.num_attention_heads, kv_heads, dim)) as attention:
            model.set_attn_implementation(IMPLEMENTATION)
            attention.begin("prefill", prefill.shape[1], prefill.shape[1])
            _, cache = _forward(model, prefill, None)
            before = copy.deepcopy(cache)
            attention.begin("step", rows, tokens.shape[1])
            hooked, _ = _forward(model, step, cache)
            attention.begin("altered step", rows, tokens.shape[1])
            altered = torch.cat([step[:, :1], (step[:, 1:] + 1) % config.vocab_size], dim=1)
            changed, _ = _forward(model, altered, before)
        model.set_attn_implementation(OTHER)
        uncached = model(tokens, use_cache=False, logits_to_keep=rows).logits[0]
        model.set_attn_implementation(STOCK)
    phases = ("prefill", "step", "altered step")
    expected = Counter({(phase, layer): 1 for phase in phases for layer in range(depth)})
    if attention.calls != expected or sorted(attention.seen) != sorted(layers):
        raise CaptureError(
            f"hook: expected one call of each of {depth} layers in each of {phases}, "
            f"but got {dict(attention.calls)}; this model's attention takes another route"
        )
    causal = bool(torch.equal(changed[0], hooked[0])) and (rows == 1 or not torch.equal(changed[1:], hooked[1:]))
    proof = Proof(
        calls_per_layer={str(layer): attention.calls["step", layer] for layer in range(depth)},
        logits_equal_to_stock=bool(torch.equal(stock, hooked)),
        causal_mask_checked=True,
        later_tokens_do_not_reach_earlier_rows=causal,
        attention_error=max(_attention_error(seen) for seen in attention.seen.values()),
        logits_error_uncached=float((uncached - hooked).abs().max() / hooked.abs().max()),
    )
    _require_proven(proof)
    return HookRecord({layer: attention.seen[layer] for layer in layers}, proof)


def _require_proven(proof: Proof) -> None:
    for holds, what in (
        (proof.logits_equal_to_stock, "the hooked run must give the logits of the stock run, bit for bit"),
        (proof.later_tokens_do_not_reach_earlier_rows, "altered later tokens must change their own rows only"),
        (proof.attention_error <= ATTENTION_TOLERANCE,
         f"FP64 attention of the tensors seen must be within {ATTENTION_TOLERANCE} of the model's"),
        (proof.logits_error_uncached <= UNCACHED_TOLERANCE,
         f"an uncached pass must give the logits within {UNCACHED_TOLERANCE}"),
    ):  # fmt: skip
        if not holds:
            raise CaptureError(f"proof: {what}, but got {proof}; what was seen is not what the model computes")


def _attention_error(seen: LayerCall) -> float:
    """FP64 attention of q, k, v, row r seeing tokens-rows+1+r tokens and head h reading KV head h // G."""
    heads, rows, _ = seen.q.shape
    ranks, tokens, _ = seen.k.shape
    head_of = np.arange(heads) // (heads // ranks)
    scores = np.einsum("hrd,htd->hrt", seen.q.astype(np.float64), seen.k[head_of].astype(np.float64)) * seen.scale
    visible = np.arange(tokens)[None, :] <= tokens - rows + np.arange(rows)[:, None]
    weights = np.exp(np.where(visible, scores, -np.inf) - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    exact = np.einsum("hrt,htd->rhd", weights, seen.v[head_of].astype(np.float64))
    error, largest = float(np.abs(exact - seen.output).max()), float(np.abs(seen.output).max())
    return error / largest if largest > 0 else error


def _two_passes(model: Any, prefill: Any, step: Any) -> tuple[Any, Any]:
    _, cache = _forward(model, prefill, None)
    return _forward(model, step, cache)


def _forward(model: Any, ids: Any, cache: Any) -> tuple[Any, Any]:
    """One pass over ids [1, n]; logits [n, vocabulary] (of the last row only in a prefill) and the cache."""
    # transformers renames past_key_values to cache; either name stays valid for its versions only.
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    result = model(ids, use_cache=True, logits_to_keep=1 if cache is None else ids.shape[1], **{name: cache})
    kept = getattr(result, name, None)
    return result.logits[0], result.past_key_values if kept is None else kept


@contextmanager
def _registered(layers: Sequence[int], heads: tuple[int, int, int]) -> Iterator[Attention]:
    from transformers import AttentionInterface, AttentionMaskInterface

    stock = AttentionInterface()[STOCK]
    attention = Attention(stock, layers, heads)
    AttentionInterface.register(IMPLEMENTATION, attention)
    AttentionMaskInterface.register(IMPLEMENTATION, AttentionMaskInterface()[STOCK])
    try:
        yield attention
    finally:
        # There is no way back out of the registry; the entry at least lets go of the tensors.
        AttentionInterface.register(IMPLEMENTATION, stock)


def _require(where: str, what: str, expected: tuple[int, ...], came: tuple[int, ...]) -> None:
    if expected != came:
        raise CaptureError(
            f"{where}: {what}: expected shape {expected}, but got {came}; the recipe names another model"
        )
