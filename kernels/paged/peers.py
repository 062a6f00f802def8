"""Third-party attention over the same tokens: PyTorch's SDPA and FlashInfer, on live inputs.

Each peer gets inputs in the form of its own interface, prepared before any timing:

    sdpa-f16             K and V as f16 [1, 1, tokens, D], contiguous; the fastest of PyTorch's backends in that case
    flashinfer-f16       K and V as f16 in pages of the case's size; -page16 the same in pages of 16 tokens
    flashinfer-e4m3      K and V as e4m3 in pages of the case's size; -page16 the same in pages of 16 tokens

FlashInfer splits the tokens at page boundaries, so pages of 16 give it finer splits than large ones.

Scores are q.k * (scale * k_scale); the bracket is the peer's softmax scale. An f16 V holds v * v_scale, rounded once;
an e4m3 V holds the codes, and FlashInfer multiplies its f16 output by v_scale in a separate kernel. Row r of R sees
total-R+1+r tokens: the causal mask is aligned to the lower right, as FlashInfer's `causal` is. SDPA's `is_causal` is
aligned to the upper left, where row 0 would see one token.

All layers are captured as one CUDA graph, so that no time includes launches from Python.
"""

import importlib
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from audit import Array, Case, InputError, Inputs, Peer, PeerRun, PlanError, ToolMissing

from .peer_run import LayersRun, first_line
from .storage import E4M3_NAN, views

_WORKSPACE = 256 << 20  # bytes; FlashInfer advises 128 MiB, 48 query rows of 256 halves over 264 blocks need 104
_SUB_PAGE = 16


def sdpa(case: Case, layers: Sequence[Inputs], device: str = "cuda") -> PeerRun:
    """PyTorch's scaled_dot_product_attention; on a GPU by the backend that is fastest here.

    Raises ToolMissing without torch, a GPU, or a backend that runs the case; PlanError or InputError where inputs do
    not fit.
    """
    torch = _torch(device)
    total = live_total(layers)
    ways: dict[str, list[Callable[[], Any]]] = {}
    bias = _tail_bias(torch, case.rows, total, device) if case.rows > 1 else None
    for inputs in layers:
        table = np.asarray(inputs["table"]).reshape(-1)
        k, v = (
            decoded(torch, codes.reshape(1, 1, -1, case.dim)[:, :, :total], factor)
            for codes, factor in zip(
                _upload(torch, case, inputs, table, total, device), (1.0, float(inputs["v_scale"])), strict=True
            )
        )
        q = _tensor(torch, inputs["q"], device).transpose(0, 1)[None].contiguous()
        for name, way in _backends(torch, q, k, v, bias, softmax_scale(inputs)).items():
            ways.setdefault(name, []).append(way)
    return _fastest(torch, device, ways)


def flashinfer(case: Case, layers: Sequence[Inputs], kv: str = "f16", page: int = 0) -> PeerRun:
    """FlashInfer's paged prefill (fa2), one request. kv is f16 or e4m3; page 0 means the case's page size.

    One plan serves all layers. Their tables may differ, so every layer is copied into the page order of the first.
    Raises ToolMissing without FlashInfer, torch or a GPU; PlanError or InputError where inputs do not fit.
    """
    torch = _torch("cuda")
    library = _library("flashinfer")
    total, size = live_total(layers), page or case.page
    order, table = placement(layers[0], case.page)
    dtype = torch.float16 if kv == "f16" else torch.float8_e4m3fn
    workspace = torch.empty(_WORKSPACE, dtype=torch.uint8, device="cuda")
    wrapper = library.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD", backend="fa2")
    arrays = plan_arrays(case.rows, table, case.page, size, total)
    try:
        wrapper.plan(
            *(torch.from_numpy(array) for array in arrays),
            *(case.heads, 1, case.dim, size),
            causal=True,
            sm_scale=1.0,
            q_data_type=torch.float16,
            kv_data_type=dtype,
            non_blocking=False,
        )
    except (RuntimeError, OSError) as error:  # it compiles its kernels here
        raise ToolMissing(
            f"peer flashinfer: could not build or plan its kernels for {kv} and heads of {case.dim}: "
            f"{first_line(error)}; install ninja and the nvcc of torch's CUDA version"
        ) from error
    calls = []
    for inputs in layers:
        codes = _upload(torch, case, inputs, np.asarray(inputs["table"]).reshape(-1), total, "cuda", order)
        v_scale = float(inputs["v_scale"])
        if kv == "f16":
            cache = decoded(torch, codes[0], 1.0), decoded(torch, codes[1], v_scale)
        else:
            cache = tuple(part.view(torch.float8_e4m3fn) for part in codes)
        q = _tensor(torch, inputs["q"], "cuda")
        calls.append(
            partial(
                wrapper.run,
                q,
                tuple(part.view(-1, size, 1, case.dim) for part in cache),
                k_scale=softmax_scale(inputs),  # times the plan's sm_scale of 1: layers may differ in it
                v_scale=None if kv == "f16" else v_scale,
                out=torch.empty_like(q),
            )
        )
    return LayersRun(torch, "cuda", calls, f"paged prefill fa2, pages of {size}")


def softmax_scale(inputs: Inputs) -> float:
    """scale * k_scale, exact."""
    return float(inputs["scale"]) * float(inputs["k_scale"])


def live_total(layers: Sequence[Inputs]) -> int:
    """The visible tokens of all layers. Raises PlanError unless each has positive lengths total-R+1 .. total."""
    lengths = np.asarray(layers[0]["lengths"])
    total = int(lengths.max())
    live = np.arange(total - lengths.size + 1, total + 1)
    for inputs in layers:
        got = np.asarray(inputs["lengths"])
        if live[0] < 1 or not np.array_equal(got, live):
            raise PlanError(
                f"peers: expected the lengths of a live round in every layer, {max(1, live[0])}..{total}, "
                f"but got {got.tolist()}; choose a context of at least {lengths.size} tokens, without empty rows"
            )
    return total


def placement(inputs: Inputs, page: int) -> tuple[Array, Array]:
    """(order, table), i32: physical page i holds logical page order[i], and table[order[i]] = i.

    Pages with visible tokens keep their order in memory; the others are left out.
    """
    entries = -(-int(np.max(inputs["lengths"])) // page)
    order = np.argsort(np.asarray(inputs["table"]).reshape(-1)[:entries]).astype(np.int32)
    return order, np.argsort(order).astype(np.int32)


def plan_arrays(rows: int, table: Array, page: int, size: int, total: int) -> tuple[Array, Array, Array, Array]:
    """FlashInfer's qo_indptr, kv_indptr, kv_indices and last_page_len, all i32, of one request in pages of `size`.

    A contiguous page of `page` tokens is also page / size pages of `size`. Raises PlanError where that has a remainder.
    """
    each, rest = divmod(page, size)
    if rest:
        raise PlanError(f"peers: expected a page size that divides the case's {page} tokens, but got {size}")
    entries = -(-total // size)
    indices = (table[:, None] * each + np.arange(each)).reshape(-1)[:entries]
    as_i32 = partial(np.array, dtype=np.int32)
    return as_i32([0, rows]), as_i32([0, entries]), as_i32(indices), as_i32([total - (entries - 1) * size])


def decoded(torch: Any, codes: Any, factor: float) -> Any:
    """e4m3 codes, a u8 tensor, as contiguous f16: exact where the factor is 1, else value * factor rounded once."""
    values = codes.view(torch.float8_e4m3fn)
    if factor == 1.0:
        return values.to(torch.float16).contiguous()
    return (values.to(torch.float32) * factor).to(torch.float16).contiguous()


def moves(case: Case, kv_bytes: int, page: int | None = None) -> int:
    """Bytes that a peer must move for one layer: K, V, q, out and, if paged, the table (page 0: the case's size)."""
    kv = 2 * case.context * case.dim * kv_bytes
    q_and_out = 2 * case.rows * case.heads * case.dim * 2
    table = 0 if page is None else -(-case.context // (page or case.page)) * 4
    return int(kv + q_and_out + table)


def _flashinfer_peer(kv: str, page: int) -> Peer:
    return Peer(
        f"flashinfer-{kv}" + (f"-page{page}" if page else ""),
        "flashinfer-python",
        partial(flashinfer, kv=kv, page=page),
        partial(moves, kv_bytes=2 if kv == "f16" else 1, page=page),
    )


PEERS = (
    Peer("sdpa-f16", "torch", sdpa, partial(moves, kv_bytes=2)),
    *(_flashinfer_peer(kv, page) for kv in ("f16", "e4m3") for page in (0, _SUB_PAGE)),
)


def _upload(
    torch: Any, case: Case, inputs: Inputs, table: Array, total: int, device: str, order: Array | None = None
) -> tuple[Any, Any]:
    """K and V, u8 [pages, page, 1, D] on the device: logical page order[i] at i (without an order: i at i).

    Tokens past `total` in the last page become zeros, since a peer may read them. Raises InputError where a visible
    token is NaN.
    """
    whole = msgspec.structs.replace(case, axes={**case.axes, "context": table.size * case.page})
    entries = -(-total // case.page)
    order = np.arange(entries) if order is None else order
    last = int(np.flatnonzero(order == entries - 1)[0])
    parts = []
    for name, view in zip("KV", views(whole, inputs), strict=True):
        codes = torch.from_numpy(view[table[order]]).to(device)
        codes[last, total - (entries - 1) * case.page :] = 0
        if bool(((codes & E4M3_NAN) == E4M3_NAN).any()):
            raise InputError(f"peers: expected no NaN in the {total} visible tokens of {name}, but found one")
        parts.append(codes)
    return parts[0], parts[1]


def _tail_bias(torch: Any, rows: int, total: int, device: str) -> Any:
    """f16 [1, 1, rows, total]: 0 where row r sees the token, -inf elsewhere. Rows are aligned to 16 elements, as the
    memory-efficient kernel requires; otherwise it copies the bias in every call."""
    padded = torch.zeros((1, 1, rows, -(-total // 16) * 16), dtype=torch.float16, device=device)
    bias = padded[..., :total]
    row, token = torch.arange(rows, device=device)[:, None], torch.arange(total, device=device)
    return bias.masked_fill_(token > total - rows + row, -math.inf)


def _backends(torch: Any, q: Any, k: Any, v: Any, bias: Any, scale: float) -> Mapping[str, Callable[[], Any]]:
    """Calls that compute one layer, [rows, G, D], by backend; q [1, G, rows, D], k and v [1, 1, tokens, D]."""
    attention = torch.nn.functional.scaled_dot_product_attention
    rows, heads = q.shape[2], q.shape[1]
    biased = partial(attention, q, k, v, attn_mask=bias, scale=scale, enable_gqa=True)
    if q.device.type == "cpu":
        return {"SDPA": lambda: biased()[0].transpose(0, 1)}
    backends = torch.nn.attention.SDPBackend
    tail = torch.nn.attention.bias.causal_lower_right(rows, k.shape[2]) if rows > 1 else None
    # The memory-efficient kernel has no grouped heads; a stride of 0 repeats the KV head without a copy.
    spread = partial(attention, q, *(x.expand(-1, heads, -1, -1) for x in (k, v)), attn_mask=bias, scale=scale)
    ways = {
        "SDPA, flash": (backends.FLASH_ATTENTION, partial(biased, attn_mask=tail)),
        "SDPA, cuDNN": (backends.CUDNN_ATTENTION, biased),
        "SDPA, memory-efficient": (backends.EFFICIENT_ATTENTION, spread),
    }
    return {name: partial(_pinned, torch, *way) for name, way in ways.items()}


def _pinned(torch: Any, backend: Any, call: Callable[[], Any]) -> Any:
    with torch.nn.attention.sdpa_kernel([backend]):
        return call()[0].transpose(0, 1)


def _fastest(torch: Any, device: str, ways: Mapping[str, Sequence[Callable[[], Any]]]) -> LayersRun:
    """The way whose replay of all layers is the quickest; a way that this PyTorch or this GPU lacks is left out."""
    if len(ways) == 1:
        ((name, calls),) = ways.items()
        return LayersRun(torch, device, calls, name)
    best: tuple[float, LayersRun] | None = None
    refusals = []
    for name, calls in ways.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch says at length why a backend will not do
                run = LayersRun(torch, device, calls, name)
                taken = run.milliseconds()
        except RuntimeError as error:
            refusals.append(f"{name}: {first_line(error)}")
            continue
        if best is None or taken < best[0]:
            best = taken, run
    if best is None:
        raise ToolMissing(f"no attention backend of torch {torch.__version__} runs this case: {'; '.join(refusals)}")
    return best[1]


def _tensor(torch: Any, array: object, device: str) -> Any:
    return torch.from_numpy(np.array(array)).to(device)  # a copy: inputs may be read-only, which torch does not know


def _torch(device: str) -> Any:
    torch = _library("torch")
    if device == "cuda" and not torch.cuda.is_available():
        raise ToolMissing("peers run on a GPU, and torch sees none: install its CUDA build on a machine that has one")
    for part in ("torch.nn.attention", "torch.nn.attention.bias"):
        importlib.import_module(part)
    return torch


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        absent = isinstance(error, ImportError) and error.name == name
        missing = "is not installed" if absent else f"could not be imported ({first_line(error)})"
        raise ToolMissing(f"peer {name}: {name} {missing}; install it, or leave this peer out") from error
