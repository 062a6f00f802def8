"""Recording from a live model: a tiny Llama with random weights, seen through the real hook."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from audit.capture import hook  # noqa: E402
from audit.capture.hook import IMPLEMENTATION, observe_attention  # noqa: E402
from audit.capture.manifest import Environment, Model  # noqa: E402
from audit.capture.model import LoadedModel  # noqa: E402
from audit.capture.publish import publish  # noqa: E402
from audit.capture.recipe import GeometryRecipe, ModelRecipe, Recipe, RunRecipe, TextRecipe  # noqa: E402
from audit.capture.record import record_with, token_digest  # noqa: E402
from audit.capture.store import CaptureStore  # noqa: E402
from audit.errors import CaptureError  # noqa: E402

pytestmark = [
    pytest.mark.capture,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

TOKENS, ROWS = 45, 5
IDS = [(7 * i * i + 3) % 61 for i in range(TOKENS)]


@pytest.fixture
def model() -> Iterator[Any]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        vocab_size=61,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    yield transformers.LlamaForCausalLM(config).eval()
    torch.set_num_threads(threads)


@pytest.fixture
def recipe() -> Recipe:
    return Recipe(
        schema="kernel-audit.capture-recipe",
        version=1,
        name="tiny",
        layers=(0, 2),
        tokens=TOKENS,
        rows=ROWS,
        page=16,
        model=ModelRecipe(name="tiny", package="none", version="0", file="*", sha256="0" * 64, licence="none"),
        text=TextRecipe(file="text.txt", origin="made up", licence="none"),
        geometry=GeometryRecipe(layers=3, query_heads=6, kv_heads=2, head_dim=8),
        run=RunRecipe(threads=1, environment={}),
    )


def loaded(model: Any, ids: list[int] = IDS) -> LoadedModel:
    return LoadedModel(
        network=model,
        tokenise=lambda _text: list(ids),
        origin=Model(name="tiny", package="none", version="0", file="none", nbytes=0, sha256="0" * 64, licence="none"),
        environment=Environment(packages={}, python="", machine="", cpu_capability="", threads=1, variables={}),
    )


def test_what_is_seen_is_what_the_cache_holds(model: Any) -> None:
    seen = observe_attention(model, IDS, rows=ROWS, layers=[1, 2])
    with torch.inference_mode():
        cache = model(torch.tensor([IDS]), use_cache=True).past_key_values
    assert sorted(seen.layers) == [1, 2]
    for layer, one in seen.layers.items():
        assert one.q.shape == (6, ROWS, 8)
        assert one.k.shape == one.v.shape == (2, TOKENS, 8)
        assert one.output.shape == (ROWS, 6, 8)
        assert one.scale == 8**-0.5
        for came, kept in ((one.k, cache.layers[layer].keys), (one.v, cache.layers[layer].values)):
            assert np.abs(came - kept[0].numpy()).max() <= 1e-5
    assert seen.proof.calls_per_layer == {"0": 1, "1": 1, "2": 1}
    assert seen.proof.logits_equal_to_stock
    assert 0 < seen.proof.attention_error <= 1e-5
    assert 0 < seen.proof.logits_error_uncached <= 1e-4
    assert model.config._attn_implementation == "sdpa"


def test_one_row_is_a_step_too(model: Any) -> None:
    seen = observe_attention(model, IDS, rows=1, layers=[0])
    assert seen.layers[0].q.shape == (6, 1, 8)


def test_without_the_mask_function_the_step_is_refused(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trap itself: attention registered, mask not, so the mask is None and five rows see their future."""
    monkeypatch.setattr(transformers.AttentionMaskInterface, "register", lambda *_: None)
    monkeypatch.delitem(transformers.AttentionMaskInterface._global_mapping, IMPLEMENTATION, raising=False)
    with pytest.raises(CaptureError, match="layer 0, step: expected a causal mask, but got none"):
        observe_attention(model, IDS, rows=ROWS, layers=[0])


def test_a_mask_that_is_not_causal_is_refused(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stock = transformers.AttentionMaskInterface()["sdpa"]

    def open_mask(*args: Any, **kwargs: Any) -> Any:
        mask = stock(*args, **kwargs)
        return None if mask is None else torch.ones_like(mask)

    monkeypatch.setitem(transformers.AttentionMaskInterface._global_mapping, "sdpa", open_mask)
    with pytest.raises(CaptureError, match="layer 0, step: mask: expected the causal one"):
        observe_attention(model, IDS, rows=ROWS, layers=[0])


def test_a_layer_that_takes_another_route_is_noticed(model: Any) -> None:
    """A decoder layer whose attention is replaced never reaches the hook."""

    class Bypass(torch.nn.Module):
        def forward(self, hidden_states: Any, **_: Any) -> tuple[Any, None]:
            return hidden_states, None

    model.model.layers[1].self_attn = Bypass()
    with pytest.raises(CaptureError, match="expected one call of each of 3 layers"):
        observe_attention(model, IDS, rows=ROWS, layers=[0])


def test_a_layer_called_twice_is_noticed(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(hook.Attention):
        def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            super().__call__(*args, **kwargs)
            return super().__call__(*args, **kwargs)

    monkeypatch.setattr(hook, "Attention", Twice)
    with pytest.raises(CaptureError, match=r"\('step', 1\): 2"):
        observe_attention(model, IDS, rows=ROWS, layers=[0])


def test_a_hook_that_changes_the_answer_is_noticed(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nudging(hook.Attention):
        def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            output, weights = super().__call__(*args, **kwargs)
            return output * (1 + 2**-20), weights

    monkeypatch.setattr(hook, "Attention", Nudging)
    with pytest.raises(CaptureError, match="bit for bit"):
        observe_attention(model, IDS, rows=ROWS, layers=[0])


def test_tensors_that_are_not_those_of_the_output_are_noticed(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads in another order than repeat_kv's: only the recomputed attention can tell."""

    class Shuffling(hook.Attention):
        def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            result = super().__call__(*args, **kwargs)
            if self.phase == "step":
                seen = self.layer_calls[0]
                self.layer_calls[0] = hook.LayerCall(seen.q[::-1], seen.k, seen.v, seen.scale, seen.output)
            return result

    monkeypatch.setattr(hook, "Attention", Shuffling)
    with pytest.raises(CaptureError, match="FP64 attention"):
        observe_attention(model, IDS, rows=ROWS, layers=[0])


def test_another_model_than_stated_is_refused_in_the_hook(model: Any) -> None:
    model.config.num_key_value_heads = 3
    with pytest.raises(CaptureError, match=r"k: expected shape \(1, 3, "):
        observe_attention(model, IDS, rows=ROWS, layers=[0])


def test_a_recording_is_stored_and_repeats(model: Any, recipe: Recipe, tmp_path: Path) -> None:
    text = b"any text"
    for name in ("a", "b"):
        made = record_with(loaded(model), recipe, text, lambda _line: None)
        publish(tmp_path / name / "tiny", made.manifest, made.files)
    for path in (tmp_path / "a" / "tiny").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / "tiny" / path.name).read_bytes()
    store = CaptureStore(tmp_path / "a")
    assert [ref.id for ref in store.list()] == [f"tiny/layer{layer}/rank{rank}" for layer in (0, 2) for rank in (0, 1)]
    assert store.census()[0].whole
    seen = observe_attention(model, IDS, rows=ROWS, layers=[2]).layers[2]
    capture = store.load("tiny/layer2/rank1")
    assert capture.arrays["q"].shape == (ROWS, 3, 8)
    assert (capture.arrays["q"] == seen.q[3:].transpose(1, 0, 2).astype(np.float16)).all()
    assert capture.tokens == TOKENS
    assert capture.lengths(3).tolist() == [43, 44, 45]
    manifest, _ = store.manifest("tiny")
    assert manifest.tokens.sha256 == hashlib.sha256(np.array(IDS, "<i4").tobytes()).hexdigest() == token_digest(IDS)


def test_too_little_text_is_refused(model: Any, recipe: Recipe) -> None:
    with pytest.raises(CaptureError, match="expected 45 tokens, but got 44"):
        record_with(loaded(model, IDS[:-1]), recipe, b"", lambda _line: None)


def test_layers_that_share_their_tensors_are_noticed(model: Any, recipe: Recipe) -> None:
    """Zero weights make all of V equal: one tensor under four names, which no census may count as four."""
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.v_proj.weight.zero_()
            layer.self_attn.o_proj.weight.normal_()
    with pytest.raises(CaptureError, match="v: expected 4 different tensors, one for each layer and rank, but got 1"):
        record_with(loaded(model), recipe, b"", lambda _line: None)
