"""Intercepts the inputs of a live model's attention, and proves that they are the model's.

transformers looks up both the attention function and the *mask* function by the implementation's name. If only the
attention function is registered, it gets no mask, and a step of several rows silently attends to its own future. So the
hook registers both and compares the mask with the causal one. It also compares the model's logits with those of the
library's own attention.
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
"""An attention of other code, which can contradict the hook."""

ATTENTION_TOLERANCE = 1e-5
UNCACHED_TOLERANCE = 1e-4
"""Relative to the largest value; covers float32 sums in another order."""


class LayerCall(msgspec.Struct, frozen=True, eq=False):
    """One layer's attention in the step: q f32 [heads, rows, D], k and v f32 [ranks, tokens, D]."""

    q: NDArray[np.float32]
    k: NDArray[np.float32]
    v: NDArray[np.float32]
    scale: float
    output: NDArray[np.float32]
    """The output of the library's attention, f32 [rows, heads, D]."""


class HookRecord(msgspec.Struct, frozen=True, eq=False):
    """The tensors of the wanted layers, and the proof that they are the model's."""

    layers: dict[int, LayerCall]
    proof: Proof


class Attention:
    """The registered attention function: checks, counts and keeps its inputs, then calls the stock attention."""

    def __init__(self, stock: Any, wanted: Sequence[int], heads: tuple[int, int, int]) -> None:
        self._stock = stock
        self._wanted = frozenset(wanted)
        self._heads = heads
        self.phase = ""
        self.queries = 0
        self.tokens = 0
        self.calls: Counter[tuple[str, int]] = Counter()
        self.layer_calls: dict[int, LayerCall] = {}

    def begin(self, phase: str, queries: int, tokens: int) -> None:
        """Announce the next forward pass: its query rows and the tokens visible to it."""
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
            self.layer_calls[layer] = LayerCall(q, k, v, float(kwargs["scaling"]), o)
        return output, weights

    def _require_causal(self, where: str, mask: Any) -> None:
        """Require the causal mask. Only for a whole pass or a single row does None mean causal."""
        import torch

        if mask is None:
            if self.queries not in (1, self.tokens):
                raise CaptureError(
                    f"{where}: expected a causal mask, but got none: rows would see their own future; "
                    "install a supported version of transformers"
                )
            return
        columns, rows = torch.arange(self.tokens), torch.arange(self.queries)
        causal = columns[None, :] <= (self.tokens - self.queries + rows)[:, None]
        _require(where, "mask", (1, 1, *causal.shape), tuple(mask.shape))
        allowed = mask[0, 0] if mask.dtype == torch.bool else mask[0, 0] == 0
        if not torch.equal(allowed, causal):
            raise CaptureError(
                f"{where}: mask: expected the causal one, but got another; record a model with full causal attention"
            )


def observe_attention(model: Any, ids: Sequence[int], *, rows: int, layers: Sequence[int]) -> HookRecord:
    """Prefill all of `ids` but the last `rows`, run those as one verification step, and return the recorded tensors.

    `model` is a transformers causal language model in float32 on the CPU. Raises CaptureError if the hook was not
    called exactly once for each layer and pass, or if a proof fails.
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
    if attention.calls != expected or sorted(attention.layer_calls) != sorted(layers):
        raise CaptureError(
            f"hook: expected one call of each of {depth} layers in each of {phases}, "
            f"but got {dict(attention.calls)}; this model bypasses the registered attention and cannot be recorded"
        )
    causal = bool(torch.equal(changed[0], hooked[0])) and (rows == 1 or not torch.equal(changed[1:], hooked[1:]))
    proof = Proof(
        calls_per_layer={str(layer): attention.calls["step", layer] for layer in range(depth)},
        logits_equal_to_stock=bool(torch.equal(stock, hooked)),
        causal_mask_checked=True,
        later_tokens_do_not_reach_earlier_rows=causal,
        attention_error=max(_attention_error(call) for call in attention.layer_calls.values()),
        logits_error_uncached=float((uncached - hooked).abs().max() / hooked.abs().max()),
    )
    _require_proven(proof)
    return HookRecord({layer: attention.layer_calls[layer] for layer in layers}, proof)


def _require_proven(proof: Proof) -> None:
    for holds, what in (
        (proof.logits_equal_to_stock, "expected the logits of the stock run, bit for bit"),
        (proof.later_tokens_do_not_reach_earlier_rows, "expected altered later tokens to change only their own rows"),
        (proof.attention_error <= ATTENTION_TOLERANCE,
         f"expected FP64 attention of the recorded tensors within {ATTENTION_TOLERANCE} of the model's"),
        (proof.logits_error_uncached <= UNCACHED_TOLERANCE,
         f"expected the logits of an uncached pass within {UNCACHED_TOLERANCE}"),
    ):  # fmt: skip
        if not holds:
            raise CaptureError(
                f"proof: {what}, but got {proof}; the recorded tensors are not the model's, so nothing was written"
            )


def _attention_error(call: LayerCall) -> float:
    """The error against FP64 attention, in which row r sees tokens-rows+1+r tokens and head h reads KV head h // G."""
    heads, rows, _ = call.q.shape
    ranks, tokens, _ = call.k.shape
    head_of = np.arange(heads) // (heads // ranks)
    scores = np.einsum("hrd,htd->hrt", call.q.astype(np.float64), call.k[head_of].astype(np.float64)) * call.scale
    visible = np.arange(tokens)[None, :] <= tokens - rows + np.arange(rows)[:, None]
    weights = np.exp(np.where(visible, scores, -np.inf) - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    exact = np.einsum("hrt,htd->rhd", weights, call.v[head_of].astype(np.float64))
    error, largest = float(np.abs(exact - call.output).max()), float(np.abs(call.output).max())
    return error / largest if largest > 0 else error


def _two_passes(model: Any, prefill: Any, step: Any) -> tuple[Any, Any]:
    _, cache = _forward(model, prefill, None)
    return _forward(model, step, cache)


def _forward(model: Any, ids: Any, cache: Any) -> tuple[Any, Any]:
    """One pass over ids [1, n]: logits [n, vocabulary] and the cache. A prefill gives logits of its last row only."""
    # transformers renames past_key_values to cache; each version accepts only its own name.
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
        # The registry cannot remove an entry; replacing it at least frees the tensors.
        AttentionInterface.register(IMPLEMENTATION, stock)


def _require(where: str, what: str, expected: tuple[int, ...], actual: tuple[int, ...]) -> None:
    if expected != actual:
        raise CaptureError(
            f"{where}: {what}: expected shape {expected}, but got {actual}; correct the recipe's geometry or model"
        )
