"""Twelve operators of a language model, each with a plain kernel and a faster one, in files with host code."""

import numpy as np

from audit import Axis, Buffer, Launch, Operator, Reference, RelL2, Source, Variant

INCLUDES = ("-Ikernels",)


def operator(name, axes, buffers, inputs, reference, launches, limits, defines=None):
    """`launches` are those of the plain kernel and of the faster one, which must give the same bytes."""
    code = Source(f"kernels/{name}.cu", defines or {}, INCLUDES)
    plain, fast = launches
    return Operator(
        name,
        axes=[Axis(axis, value) for axis, value in axes.items()],
        buffers=lambda case: [Buffer(*words.split(":")) for words in buffers],
        inputs=inputs,
        references=[Reference("fp64", lambda case, given: {
            key: np.asarray(value) for key, value in reference(case, {
                n: v.astype(np.float64) if np.asarray(v).dtype.kind == "f" else v for n, v in given.items()
            }).items()
        })],
        bounds=[RelL2(output, limit) for output, limit in limits.items()],
        variants=[
            Variant("plain", code, plain, status="control"),
            Variant("fast", code, fast, parent="plain"),
        ],
    )  # fmt: skip


def f32(array):
    """The array as f32."""
    return np.asarray(array).astype(np.float32)


def div(value, by):
    """The quotient, rounded up."""
    return -(-value // by)


def softmax64(x):
    """softmax over the last dimension."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


encoder_forward = operator(
    "encoder_forward",
    {"B": 2, "T": 5, "C": 48, "V": 19},
    ["out:f32:B T C:out", "inp:i32:B T:in", "wte:f32:V C:in", "wpe:f32:T C:in"],
    lambda c, r: {
        "inp": r.integers(0, c.V, (c.B, c.T)).astype(np.int32),
        "wte": f32(r.normal(size=(c.V, c.C))),
        "wpe": f32(r.normal(size=(c.T, c.C))),
    },
    lambda c, x: {"out": x["wte"][x["inp"]] + x["wpe"]},
    (
        lambda c: [Launch("encoder_forward_kernel1", (div(c.B * c.T * c.C, 128),), (128,),
                          args=("out", "inp", "wte", "wpe", c.B, c.T, c.C))],
        lambda c: [Launch("encoder_forward_kernel2", (div(c.B * c.T * c.C, 4 * 64),), (64,),
                          args=("out", "inp", "wte", "wpe", c.B, c.T, c.C))],
    ),
    {"out": 1e-6},
)  # fmt: skip


def layernorm64(c, x):
    """Mean, reciprocal standard deviation, and the normalised rows."""
    mean, rstd = x["inp"].mean(-1), 1 / np.sqrt(x["inp"].var(-1) + 1e-5)
    return {"mean": mean, "rstd": rstd, "out": (x["inp"] - mean[:, None]) * rstd[:, None] * x["weight"] + x["bias"]}


layernorm_forward = operator(
    "layernorm_forward",
    {"N": 13, "C": 100},
    ["out:f32:N C:out", "mean:f32:N:out", "rstd:f32:N:out", "inp:f32:N C:in", "weight:f32:C:in", "bias:f32:C:in"],
    lambda c, r: {"inp": f32(r.normal(1, 2, (c.N, c.C))), "weight": f32(r.normal(size=c.C)),
                  "bias": f32(r.normal(size=c.C))},
    layernorm64,
    (
        lambda c: [
            Launch("layernorm_statistics_kernel", (div(c.N * 32, 128),), (128,),
                   args=("mean", "rstd", "inp", c.N, c.C)),
            Launch("layernorm_apply_kernel", (div(c.N * c.C, 128),), (128,),
                   args=("out", "inp", "mean", "rstd", "weight", "bias", c.N, c.C)),
        ],
        lambda c: [Launch("layernorm_forward_kernel2", (div(c.N * 32, 256),), (256,),
                          args=("out", "mean", "rstd", "inp", "weight", "bias", c.N, c.C))],
    ),
    {"out": 1e-6, "mean": 1e-6, "rstd": 1e-6},
)  # fmt: skip

residual_forward = operator(
    "residual_forward",
    {"N": 4096},
    ["out:f16:N:out", "inp1:f16:N:in", "inp2:f16:N:in"],
    lambda c, r: {"inp1": r.normal(size=c.N).astype(np.float16), "inp2": r.normal(size=c.N).astype(np.float16)},
    lambda c, x: {"out": x["inp1"] + x["inp2"]},
    (
        lambda c: [Launch("residual_forward_kernel1", (div(c.N, 256),), (256,), args=("out", "inp1", "inp2", c.N))],
        lambda c: [Launch("residual_forward_kernel2", (div(c.N, 8 * 128),), (128,), args=("out", "inp1", "inp2", c.N))],
    ),
    {"out": 1e-3},
    defines={"ENABLE_FP16": "1"},
)


def gelu64(x):
    """gelu by the approximation with tanh."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


gelu_forward = operator(
    "gelu_forward",
    {"N": 3000},
    ["out:f32:N:out", "inp:f32:N:in"],
    lambda c, r: {"inp": f32(r.normal(0, 2, c.N))},
    lambda c, x: {"out": gelu64(x["inp"])},
    (
        lambda c: [Launch("gelu_forward_kernel1", (div(c.N, 128),), (128,), args=("out", "inp", c.N))],
        lambda c: [Launch("gelu_forward_kernel2", (div(c.N, 4 * 128),), (128,), args=("out", "inp", c.N))],
    ),
    {"out": 1e-6},
)

softmax_forward = operator(
    "softmax_forward",
    {"N": 9, "C": 333},
    ["out:f32:N C:out", "inp:f32:N C:in"],
    lambda c, r: {"inp": f32(r.normal(0, 3, (c.N, c.C)))},
    lambda c, x: {"out": softmax64(x["inp"])},
    (
        lambda c: [Launch("softmax_forward_kernel1", (c.N,), (32,), args=("out", "inp", c.N, c.C))],
        lambda c: [Launch("softmax_forward_kernel2<4>", (div(c.N, 4),), (128,), args=("out", "inp", c.N, c.C))],
    ),
    {"out": 1e-6},
)

matmul_forward = operator(
    "matmul_forward",
    {"BT": 33, "C": 70, "OC": 40},
    ["out:f32:BT OC:out", "inp:f32:BT C:in", "weight:f32:OC C:in", "bias:f32:OC:in"],
    lambda c, r: {"inp": f32(r.normal(size=(c.BT, c.C))), "weight": f32(r.normal(size=(c.OC, c.C))),
                  "bias": f32(r.normal(size=c.OC))},
    lambda c, x: {"out": x["inp"] @ x["weight"].T + x["bias"]},
    tuple(
        lambda c, k=k: [Launch(f"matmul_forward_kernel{k}", (div(c.BT, 16), div(c.OC, 16)), (16, 16),
                               args=("out", "inp", "weight", "bias", c.BT, c.C, c.OC))]
        for k in (1, 2)
    ),
    {"out": 1e-6},
)  # fmt: skip


def permuted(c, x):
    """q, k and v with the heads in front of the tokens."""
    return dict(zip("qkv", np.ascontiguousarray(x["inp"].transpose(2, 0, 3, 1, 4)), strict=True))


attention_permute = operator(
    "attention_permute",
    {"B": 2, "T": 7, "NH": 3, "HS": 16},
    ["q:f32:B NH T HS:out", "k:f32:B NH T HS:out", "v:f32:B NH T HS:out", "inp:f32:B T three=3 NH HS:in"],
    lambda c, r: {"inp": f32(r.normal(size=(c.B, c.T, 3, c.NH, c.HS)))},
    permuted,
    (
        lambda c: [Launch("permute_kernel1", (div(c.B * c.T * c.NH * c.HS, 256),), (256,),
                          args=("q", "k", "v", "inp", c.B, c.T, c.NH, c.HS))],
        lambda c: [Launch("permute_kernel2", (c.T, c.NH, c.B), (32,),
                          args=("q", "k", "v", "inp", c.B, c.T, c.NH, c.HS))],
    ),
    {"q": 0.0, "k": 0.0, "v": 0.0},
)  # fmt: skip


def causal64(c, x):
    """Softmax of what a row may see, and zeros behind."""
    hidden = np.triu(np.ones((c.T, c.T), bool), 1)
    return {"out": softmax64(np.where(hidden, -np.inf, 0.125 * x["inp"]))}


attention_softmax = operator(
    "attention_softmax",
    {"N": 3, "T": 41},
    ["out:f32:N T key=41:out", "inp:f32:N T key=41:in"],
    lambda c, r: {"inp": f32(r.normal(0, 8, (c.N, c.T, c.T)))},
    causal64,
    (
        lambda c: [Launch("scale_softmax_kernel1", (c.N * c.T,), (32,), args=("out", "inp", 0.125, c.N, c.T))],
        lambda c: [Launch("scale_softmax_kernel2", (div(c.N * c.T * 32, 256),), (256,),
                          args=("out", "inp", 0.125, c.N, c.T))],
    ),
    {"out": 1e-6},
)  # fmt: skip

crossentropy_forward = operator(
    "crossentropy_forward",
    {"N": 100, "V": 50},
    ["losses:f32:N:out", "probs:f32:N V:in", "targets:i32:N:in"],
    lambda c, r: {"probs": f32(softmax64(r.normal(0, 2, (c.N, c.V)))),
                  "targets": r.integers(0, c.V, c.N).astype(np.int32)},
    lambda c, x: {"losses": -np.log(x["probs"][np.arange(c.N), x["targets"]])},
    (
        lambda c: [Launch("crossentropy_forward_kernel1", (div(c.N, 128),), (128,),
                          args=("losses", "probs", "targets", c.N, c.V))],
        lambda c: [Launch("crossentropy_forward_kernel2", (2,), (32,), args=("losses", "probs", "targets", c.N, c.V))],
    ),
    {"losses": 1e-6},
)  # fmt: skip

RATE, BETA1, BETA2, EPSILON, DECAY, STEP = 1e-3, 0.9, 0.999, 1e-8, 0.01, 3
CORRECTIONS = (1 - BETA1**STEP, 1 - BETA2**STEP)


def adamw64(c, x):
    """The parameters and the moments after one step."""
    m = BETA1 * x["m"] + (1 - BETA1) * x["grads"]
    v = BETA2 * x["v"] + (1 - BETA2) * x["grads"] ** 2
    step = m / CORRECTIONS[0] / (np.sqrt(v / CORRECTIONS[1]) + EPSILON) + DECAY * x["params"]
    return {"params": x["params"] - RATE * step, "m": m, "v": v}


def adamw_launch(entry, blocks):
    """One launch over all parameters."""
    return lambda c: [
        Launch(entry, (blocks(c),), (128,), args=("params", "grads", "m", "v", np.int64(c.P), RATE, BETA1, BETA2,
                                                  *CORRECTIONS, EPSILON, DECAY))
    ]  # fmt: skip


adamw = operator(
    "adamw",
    {"P": 1000},
    ["params:f32:P:inout", "m:f32:P:inout", "v:f32:P:inout", "grads:f32:P:in"],
    lambda c, r: {"params": f32(r.normal(size=c.P)), "m": f32(r.normal(0, 0.1, c.P)),
                  "v": f32(r.normal(0, 0.1, c.P) ** 2), "grads": f32(r.normal(size=c.P))},
    adamw64,
    (
        adamw_launch("adamw_kernel1", lambda c: div(c.P, 128)),
        adamw_launch("adamw_kernel2<float, float>", lambda c: div(c.P, 512)),
    ),
    {"params": 1e-6, "m": 1e-6, "v": 2e-5},
)  # fmt: skip

global_norm = operator(
    "global_norm",
    {"count": 20000, "blocks": 24},
    ["out:f32:one=1:out", "partial:f32:blocks:workspace", "data:f32:count:in"],
    lambda c, r: {"data": f32(r.normal(size=c.count))},
    lambda c, x: {"out": np.sum(x["data"] ** 2, keepdims=True)},
    (
        lambda c: [
            Launch("norm_partial_kernel<float>", (c.blocks,), (256,), args=("partial", "data", np.uint64(c.count))),
            Launch("norm_aggregate_kernel", (1,), (256,), args=("out", "partial", c.blocks)),
        ],
        lambda c: [Launch("norm_fused_kernel<float>", (c.blocks,), (256,),
                          args=("out", "partial", "data", np.uint64(c.count)))],
    ),
    {"out": 1e-6},
)  # fmt: skip

argmax = operator(
    "argmax",
    {"rows": 6, "V": 1001},
    ["out:i32:rows:out", "logits:f32:rows V:in"],
    lambda c, r: {"logits": f32(r.integers(-50, 50, (c.rows, c.V)))},
    lambda c, x: {"out": x["logits"].argmax(-1)},
    (
        lambda c: [Launch("argmax_kernel1", (c.rows,), (32,), args=("out", "logits", c.V))],
        lambda c: [Launch("argmax_kernel2<256>", (c.rows,), (256,), 64, ("out", "logits", c.V))],
    ),
    {"out": 0.0},
)
