"""Ordinary kernels as strangers write them, with inputs, references and bounds of their own: name -> (CUDA, declaration).

The right ones are right on whatever a family makes of their inputs, as far as their bounds can say. Each wrong one is
right on its plain inputs.
"""

from __future__ import annotations

HEAD = """import math
import numpy as np
from audit import *

def close(name, atol, rtol):
    def measure(case, inputs, got, expected):
        error = np.abs(got[name].astype(np.float64) - expected[name])
        return Measured(error, atol + rtol * np.abs(expected[name]), tuple(f"d{at}" for at in range(error.ndim)))
    return Bound(f"close({name})", measure)

def exact(name):
    def measure(case, inputs, got, expected):
        mine, theirs = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        error = np.where(mine == theirs, 0, np.abs(mine - theirs))
        return Measured(error, np.zeros_like(error), tuple(f"d{at}" for at in range(error.ndim)))
    return Bound(f"exact({name})", measure)

def f(inputs, name="x"):
    return np.asarray(inputs[name]).astype(np.float32).astype(np.float64)

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

def op(buffers, inputs, reference, bounds, launch, names=("k",), axes=(("rows", 8), ("n", 100)), parents=None, **more):
    return Operator(NAME, axes=[a if isinstance(a, Axis) else Axis(*a) for a in axes],
        buffers=lambda c: [Buffer(*each.split(";")) for each in buffers], inputs=inputs,
        references=[Reference("fp64", reference)] if reference else (), bounds=bounds,
        variants=[Variant(one, Source(f"kernels/{NAME}.cu"), launches=lambda c, one=one: [Launch(one, *launch(c))],
                          parent=(parents or {}).get(one)) for one in names], **more)

X, Y = "x;f32;rows n;in", "y;f32;rows n;out"
normal = lambda c, r: {"x": r.normal(size=(c.rows, c.n))}
row = lambda c: ((c.rows,), (32,), 0, ("x", "y", c.n))
flat = lambda c: ((-(-c.rows * c.n // 128),), (128,), 0, ("x", "y", c.rows * c.n))
"""
_ROW = "int r = blockIdx.x, t = threadIdx.x; const float* p = x + r * n;"
_SUM = (
    "__device__ float sum(float s) { for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o); return s; }\n"
    "__device__ float most(float s) { for (int o = 16; o; o >>= 1) s = fmaxf(s, __shfl_xor_sync(~0u, s, o)); return s; }\n"
)


def _row(name: str, body: str, out: str = "float* y", more: str = "") -> str:
    return f'extern "C" __global__ void {name}(const float* x, {out}, int n{more}) {{ {_ROW} {body} }}\n'


def _flat(name: str, expression: str) -> str:
    return (
        f'extern "C" __global__ void {name}(const float* x, float* y, int n) {{ int i = blockIdx.x * blockDim.x + '
        f"threadIdx.x; if (i < n) {{ float v = x[i]; y[i] = {expression}; }} }}\n"
    )


def _elementwise(expression: str, reference: str, bound: str, inputs: str = "normal") -> tuple[str, str]:
    return _flat("k", expression), (
        f"o = op([X, Y], {inputs}, lambda c, i: {{'y': (lambda x: {reference})(f(i))}}, [{bound}], flat)"
    )


def _rows(body: str, reference: str, bound: str, inputs: str = "normal") -> tuple[str, str]:
    return _SUM + _row("k", body), (
        f"o = op([X, Y], {inputs}, lambda c, i: {{'y': (lambda x: {reference})(f(i))}}, [{bound}], row)"
    )


_SOFTMAX = (
    "float m = -INFINITY; for (int i = t; i < n; i += 32) m = fmaxf(m, p[i]); m = most(m); float s = 0; "
    "for (int i = t; i < n; i += 32) s += expf(p[i] - m); s = sum(s); "
    "for (int i = t; i < n; i += 32) y[r * n + i] = expf(p[i] - m) / s;"
)
_MEAN = "float s = 0; for (int i = t; i < n; i += 32) s += p[i]; float mean = sum(s) / n; "
_LAYERNORM = (
    _MEAN + "s = 0; for (int i = t; i < n; i += 32) s += (p[i] - mean) * (p[i] - mean); "
    "float q = rsqrtf(sum(s) / n + 1e-5f); for (int i = t; i < n; i += 32) y[r * n + i] = (p[i] - mean) * q;"
)
_LAYERNORM64 = "(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)"
_SQUARES = "float s = 0; for (int i = t; i < n; i += 32) s += p[i] * p[i]; s = sum(s); "
_ROWSUM = "float s = 0; for (int i = t; i < n; i += 32) s += p[i]; s = sum(s); if (t == 0) y[r] = s;"
_YROW = '"y;f32;rows;out"'


def _reduced(body: str, reference: str, bound: str, inputs: str = "normal", dtype: str = "f32") -> tuple[str, str]:
    kind = {"f32": "float", "i32": "int"}[dtype]
    return _SUM + _row("k", body, f"{kind}* y"), (
        f"o = op([X, 'y;{dtype};rows;out'], {inputs}, lambda c, i: {{'y': (lambda x: {reference})(f(i))}}, "
        f"[{bound}], row)"
    )


_ARGMAX = (
    "float m = -INFINITY; int at = n; for (int i = t; i < n; i += 32) if (p[i] > m) { m = p[i]; at = i; } "
    "for (int o = 16; o; o >>= 1) { float q = __shfl_xor_sync(~0u, m, o); int a = __shfl_xor_sync(~0u, at, o); "
    "if (q > m || (q == m && a < at)) { m = q; at = a; } } if (t == 0) y[r] = at;"
)
_CUMSUM = "if (t == 0) { float s = 0; for (int i = 0; i < n; ++i) { s += p[i]; y[r * n + i] = s; } }"
_GEMM = (
    'extern "C" __global__ void k(const float* a, const float* b, float* y, int m, int n, int k) { '
    "int i = blockIdx.x, j = threadIdx.x; if (j < n) { float s = 0; for (int q = 0; q < k; ++q) "
    "s += a[i * k + q] * b[q * n + j]; y[i * n + j] = s; } }\n"
)
_UNIFORM = "lambda c, r: {'x': r.uniform(0.1, 1, (c.rows, c.n))}"
_SIGNED = "lambda c, r: {'x': r.uniform(-1, 1, (c.rows, c.n))}"
_ERF = "np.vectorize(math.erf)"

RIGHT: dict[str, tuple[str, str]] = {
    "softmax": _rows(_SOFTMAX, "softmax(x)", "RelL2('y', 1e-6)"),
    "softmax_close": _rows(_SOFTMAX, "softmax(x)", "close('y', 1e-7, 1e-5)"),
    "log_softmax": _rows(
        "float m = -INFINITY; for (int i = t; i < n; i += 32) m = fmaxf(m, p[i]); m = most(m); float s = 0; "
        "for (int i = t; i < n; i += 32) s += expf(p[i] - m); s = logf(sum(s)); "
        "for (int i = t; i < n; i += 32) y[r * n + i] = p[i] - m - s;",
        "np.log(softmax(x))",
        "close('y', 1e-5, 1e-5)",
    ),
    "online_softmax": _rows(
        "float m = -INFINITY, s = 0; for (int i = t; i < n; i += 32) { float q = fmaxf(m, p[i]); "
        "s = s * expf(m - q) + expf(p[i] - q); m = q; } float g = most(m); s = sum(m == -INFINITY ? 0 : s * expf(m - g));"
        " for (int i = t; i < n; i += 32) y[r * n + i] = expf(p[i] - g) / s;",
        "softmax(x)",
        "RelL2('y', 2e-6)",
    ),
    "layernorm": _rows(_LAYERNORM, _LAYERNORM64, "RelL2('y', 1e-6)"),
    "layernorm_close": _rows(_LAYERNORM, _LAYERNORM64, "close('y', 1e-5, 1e-5)"),
    "layernorm_offset": _rows(
        _LAYERNORM, _LAYERNORM64, "RelL2('y', 1e-5)", "lambda c, r: {'x': r.normal(3, 1, (c.rows, c.n))}"
    ),
    "rmsnorm": _rows(
        _SQUARES + "float q = rsqrtf(s / n + 1e-6f); for (int i = t; i < n; i += 32) y[r * n + i] = p[i] * q;",
        "x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)",
        "RelL2('y', 1e-6)",
    ),
    "l2_normalise": _rows(
        _SQUARES + "float q = 1 / sqrtf(s); for (int i = t; i < n; i += 32) y[r * n + i] = p[i] * q;",
        "x / np.linalg.norm(x, axis=-1, keepdims=True)",
        "close('y', 1e-6, 1e-5)",
    ),
    "standardise": _rows(
        _LAYERNORM.replace(" + 1e-5f", ""),
        "(x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)",
        "close('y', 1e-5, 1e-4)",
    ),
    "log_sum_exp": _reduced(
        "float m = -INFINITY; for (int i = t; i < n; i += 32) m = fmaxf(m, p[i]); m = most(m); float s = 0; "
        "for (int i = t; i < n; i += 32) s += expf(p[i] - m); s = sum(s); if (t == 0) y[r] = m + logf(s);",
        "np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)) + x.max(-1)",
        "close('y', 1e-6, 1e-6)",
    ),
    "sum": _reduced(_ROWSUM, "x.sum(-1)", "close('y', 1e-4, 1e-5)"),
    "sum_absolute": _reduced(_ROWSUM, "x.sum(-1)", "close('y', 1e-5, 0)"),
    "sum_of_squares": _reduced(_SQUARES + "if (t == 0) y[r] = s;", "(x * x).sum(-1)", "RelL2('y', 1e-6)"),
    "variance": _reduced(
        _MEAN + "s = 0; for (int i = t; i < n; i += 32) s += (p[i] - mean) * (p[i] - mean); s = sum(s); "
        "if (t == 0) y[r] = s / n;",
        "x.var(-1)",
        "close('y', 1e-7, 1e-5)",
    ),
    "maximum": _reduced(
        "float m = -INFINITY; for (int i = t; i < n; i += 32) m = fmaxf(m, p[i]); m = most(m); if (t == 0) y[r] = m;",
        "x.max(-1)",
        "exact('y')",
    ),
    "argmax": _reduced(_ARGMAX, "x.argmax(-1)", "exact('y')", dtype="i32"),
    "entropy": _reduced(
        "float s = 0; for (int i = t; i < n; i += 32) s -= p[i] > 0 ? p[i] * logf(p[i]) : 0; s = sum(s); "
        "if (t == 0) y[r] = s;",
        "-(x * np.log(x)).sum(-1)",
        "close('y', 1e-5, 1e-5)",
        "lambda c, r: {'x': softmax(r.normal(size=(c.rows, c.n)))}",
    ),
    "harmonic_mean": _reduced(
        "float s = 0; for (int i = t; i < n; i += 32) s += 1 / p[i]; s = sum(s); if (t == 0) y[r] = n / s;",
        "x.shape[-1] / (1 / x).sum(-1)",
        "close('y', 0, 1e-5)",
        _UNIFORM,
    ),
    "cumsum": _rows(_CUMSUM, "x.cumsum(-1)", "close('y', 1e-4, 1e-5)"),
    "cumsum_absolute": _rows(_CUMSUM, "x.cumsum(-1)", "close('y', 2e-5, 0)"),
    "gelu_tanh": _elementwise(
        "0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)))",
        "0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))",
        "close('y', 1e-6, 1e-5)",
    ),
    "gelu_erf": _elementwise(
        "0.5f * v * (1 + erff(v * 0.70710678f))", f"0.5 * x * (1 + {_ERF}(x * 0.7071067811865476))", "RelL2('y', 1e-6)"
    ),
    "silu": _elementwise("v / (1 + expf(-v))", "x / (1 + np.exp(-x))", "close('y', 1e-6, 1e-6)"),
    "sigmoid": _elementwise("1 / (1 + expf(-v))", "1 / (1 + np.exp(-x))", "close('y', 0, 1e-6)"),
    "softplus": _elementwise("fmaxf(v, 0.f) + log1pf(expf(-fabsf(v)))", "np.logaddexp(0, x)", "close('y', 1e-7, 1e-6)"),
    "elu": _elementwise(
        "v > 0 ? v : expm1f(v)", "np.where(x > 0, x, np.expm1(np.minimum(x, 0)))", "close('y', 1e-7, 1e-6)"
    ),
    "relu": _elementwise("fmaxf(v, 0.f)", "np.maximum(x, 0)", "exact('y')"),
    "rsqrt": _elementwise("rsqrtf(v)", "1 / np.sqrt(x)", "close('y', 0, 1e-6)", _UNIFORM),
    "reciprocal": _elementwise("1 / v", "1 / x", "close('y', 0, 1e-6)", _UNIFORM),
    "reciprocal_of_signed": _elementwise("1 / v", "1 / x", "close('y', 0, 1e-6)"),
    "log": _elementwise("logf(v)", "np.log(x)", "close('y', 1e-6, 1e-6)", _UNIFORM),
    "logit": _elementwise(
        "logf(v / (1 - v))",
        "np.log(x / (1 - x))",
        "close('y', 1e-5, 1e-5)",
        "lambda c, r: {'x': r.uniform(0.01, 0.99, (c.rows, c.n))}",
    ),
    "power": _elementwise("powf(v, 2.2f)", "x ** np.float64(np.float32(2.2))", "close('y', 0, 1e-6)", _UNIFORM),
    "square": _elementwise("v * v", "x * x", "close('y', 0, 1e-6)"),
    "cube": _elementwise("v * v * v", "x ** 3", "close('y', 0, 1e-6)"),
    "sine": _elementwise("sinf(v)", "np.sin(x)", "close('y', 1e-6, 0)", _SIGNED),
    "arcsine": _elementwise("asinf(v)", "np.arcsin(x)", "close('y', 1e-6, 1e-6)", _SIGNED),
    "one_minus_cosine": _elementwise(
        "2 * sinf(v / 2) * sinf(v / 2)", "2 * np.sin(x / 2) ** 2", "close('y', 1e-6, 1e-5)"
    ),
    "quantise": (
        'extern "C" __global__ void k(const float* x, signed char* y, int n) { int i = blockIdx.x * 128 + threadIdx.x; '
        "if (i < n) y[i] = (signed char)fminf(fmaxf(rintf(x[i] / 0.05f), -127.f), 127.f); }\n",
        "def off(c, i, got, e):\n"
        "    d = np.abs(got['y'].astype(np.float64) - e['y']); return Measured(d, np.ones_like(d), ())\n"
        "o = op([X, 'y;i8;rows n;out'], normal, lambda c, i: {'y': np.clip(np.rint(f(i) / 0.05), -127, 127)}, "
        "[Bound('off by one', off)], flat)",
    ),
    "quantise_exact": (
        'extern "C" __global__ void k(const float* x, signed char* y, int n) { int i = blockIdx.x * 128 + threadIdx.x; '
        "if (i < n) y[i] = (signed char)fminf(fmaxf(rintf(x[i] * 16), -127.f), 127.f); }\n",
        "o = op([X, 'y;i8;rows n;out'], normal, lambda c, i: {'y': np.clip(np.rint(f(i) * 16), -127, 127)}, "
        "[exact('y')], flat)",
    ),
    "dropout": (
        'extern "C" __global__ void k(const float* x, const float* mask, float* y, int n) '
        "{ int i = blockIdx.x * 128 + threadIdx.x; if (i < n) y[i] = x[i] * mask[i] / 0.9f; }\n",
        "o = op([X, 'mask;f32;rows n;in', Y], lambda c, r: {**normal(c, r), 'mask': (r.random((c.rows, c.n)) < 0.9) * 1.0},"
        " lambda c, i: {'y': f(i) * i['mask'] / 0.9}, [close('y', 1e-6, 1e-6)], "
        "lambda c: ((-(-c.rows * c.n // 128),), (128,), 0, ('x', 'mask', 'y', c.rows * c.n)))",
    ),
    "gather": (
        'extern "C" __global__ void k(const float* x, const int* at, float* y, int n) '
        "{ int r = blockIdx.x; for (int i = threadIdx.x; i < n; i += 32) y[r * n + i] = x[at[r] * n + i]; }\n",
        "o = op([X, 'at;i32;rows;in', Y], lambda c, r: {**normal(c, r), 'at': r.integers(0, c.rows, c.rows, np.int32)},"
        " lambda c, i: {'y': f(i)[i['at']]}, [exact('y')], "
        "lambda c: ((c.rows,), (32,), 0, ('x', 'at', 'y', c.n)))",
    ),
    "gemm": (
        _GEMM,
        "o = op(['a;f32;m k;in', 'b;f32;k n;in', 'y;f32;m n;out'], "
        "lambda c, r: {'a': r.normal(size=(c.m, c.k)), 'b': r.normal(size=(c.k, c.n))}, "
        "lambda c, i: {'y': f(i, 'a') @ f(i, 'b')}, [close('y', 1e-4, 0)], "
        "lambda c: ((c.m,), (c.n,), 0, ('a', 'b', 'y', c.m, c.n, c.k)), axes=(('m', 16), ('n', 32), ('k', 256)))",
    ),
    "gemm_relative": (
        _GEMM,
        "o = op(['a;f32;m k;in', 'b;f32;k n;in', 'y;f32;m n;out'], "
        "lambda c, r: {'a': r.normal(size=(c.m, c.k)), 'b': r.normal(size=(c.k, c.n))}, "
        "lambda c, i: {'y': f(i, 'a') @ f(i, 'b')}, [RelL2('y', 2e-6)], "
        "lambda c: ((c.m,), (c.n,), 0, ('a', 'b', 'y', c.m, c.n, c.k)), axes=(('m', 16), ('n', 32), ('k', 256)))",
    ),
    "cross_entropy": (
        _SUM
        + 'extern "C" __global__ void k(const float* x, const int* at, float* y, int n) { '
        + _ROW
        + " float m = -INFINITY; for (int i = t; i < n; i += 32) m = fmaxf(m, p[i]); m = most(m); float s = 0; "
        "for (int i = t; i < n; i += 32) s += expf(p[i] - m); s = sum(s); "
        "if (t == 0) y[r] = logf(s) + m - p[at[r]]; }\n",
        f"o = op([X, 'at;i32;rows;in', {_YROW}], "
        "lambda c, r: {**normal(c, r), 'at': r.integers(0, c.n, c.rows, np.int32)}, "
        "lambda c, i: {'y': -np.log(softmax(f(i)))[np.arange(c.rows), i['at']]}, [close('y', 1e-5, 1e-5)], "
        "lambda c: ((c.rows,), (32,), 0, ('x', 'at', 'y', c.n)))",
    ),
    "histogram": (
        'extern "C" __global__ void k(const float* x, int* y, int n) { __shared__ int h[16]; int t = threadIdx.x; '
        "if (t < 16) h[t] = 0; __syncthreads(); for (int i = t; i < n; i += 128) atomicAdd(&h[(int)(x[i] * 16)], 1); "
        "__syncthreads(); if (t < 16) y[t] = h[t]; }\n",
        "o = op(['x;f32;n;in', 'y;i32;bins=16;out'], lambda c, r: {'x': r.random(c.n).astype(np.float32) * np.float32(.999)},"
        " lambda c, i: {'y': np.bincount((f(i) * 16).astype(int), minlength=16)}, [exact('y')], "
        "lambda c: ((1,), (128,), 0, ('x', 'y', c.n)), axes=(('n', 1000),))",
    ),
    "top_2": (
        _row(
            "k",
            "if (t == 0) { int a = 0, b = -1; for (int i = 1; i < n; ++i) { if (p[i] > p[a]) { b = a; a = i; } "
            "else if (b < 0 || p[i] > p[b]) b = i; } y[2 * r] = p[a]; y[2 * r + 1] = p[b]; at[2 * r] = a; "
            "at[2 * r + 1] = b; }",
            "float* y, int* at",
        ),
        "def reference(c, i):\n"
        "    at = np.argsort(-f(i), axis=-1, kind='stable')[:, :2]\n"
        "    return {'y': np.take_along_axis(f(i), at, -1), 'at': at}\n"
        "o = op([X, 'y;f32;rows two=2;out', 'at;i32;rows two=2;out'], normal, reference, [exact('y'), exact('at')], "
        "lambda c: ((c.rows,), (32,), 0, ('x', 'y', 'at', c.n)))",
    ),
    "binary_search": (
        'extern "C" __global__ void k(const float* x, const float* table, int* y, int n, int m) '
        "{ int i = threadIdx.x; if (i < n) { int low = 0, high = m; while (low < high) { int at = (low + high) / 2; "
        "if (table[at] < x[i]) low = at + 1; else high = at; } y[i] = low; } }\n",
        "o = op(['x;f32;n;in', 'table;f32;m;in', 'y;i32;n;out'], "
        "lambda c, r: {'x': r.normal(size=c.n), 'table': np.sort(r.normal(size=c.m))}, "
        "lambda c, i: {'y': np.searchsorted(f(i, 'table'), f(i))}, [exact('y')], "
        "lambda c: ((1,), (128,), 0, ('x', 'table', 'y', c.n, c.m)), axes=(('n', 100), ('m', 37)))",
    ),
    "clamp_between": (
        'extern "C" __global__ void k(const float* x, const float* low, const float* high, float* y, int n) '
        "{ int i = threadIdx.x; if (i < n) y[i] = x[i] < low[i] ? low[i] : x[i] > high[i] ? high[i] : x[i]; }\n",
        "o = op(['x;f32;n;in', 'low;f32;n;in', 'high;f32;n;in', 'y;f32;n;out'], "
        "lambda c, r: {'x': r.normal(size=c.n), 'low': -r.random(c.n), 'high': r.random(c.n)}, "
        "lambda c, i: {'y': np.minimum(np.maximum(f(i), f(i, 'low')), f(i, 'high'))}, [exact('y')], "
        "lambda c: ((1,), (128,), 0, ('x', 'low', 'high', 'y', c.n)), axes=(('n', 100),))",
    ),
    "solve_2x2": (
        'extern "C" __global__ void k(const float* a, const float* b, float* y, int n) { int i = threadIdx.x; if (i < n) '
        "{ const float* m = a + 4 * i; float d = m[0] * m[3] - m[1] * m[2]; y[2 * i] = (b[2 * i] * m[3] - b[2 * i + 1] * "
        "m[1]) / d; y[2 * i + 1] = (m[0] * b[2 * i + 1] - m[2] * b[2 * i]) / d; } }\n",
        "o = op(['a;f32;n r=2 c=2;in', 'b;f32;n r=2;in', 'y;f32;n r=2;out'], "
        "lambda c, r: {'a': r.normal(size=(c.n, 2, 2)) + 4 * np.eye(2), 'b': r.normal(size=(c.n, 2))}, "
        "lambda c, i: {'y': np.linalg.solve(f(i, 'a'), f(i, 'b')[..., None])[..., 0]}, [RelL2('y', 1e-5)], "
        "lambda c: ((1,), (128,), 0, ('a', 'b', 'y', c.n)), axes=(('n', 64),))",
    ),
    "accumulate_in_place": (
        'extern "C" __global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * 128 + threadIdx.x; '
        "if (i < n) y[i] += 0.1f * x[i]; }\n",
        "o = op([X, 'y;f32;rows n;inout'], lambda c, r: {**normal(c, r), 'y': r.normal(size=(c.rows, c.n))}, "
        "lambda c, i: {'y': f(i, 'y') + 0.1 * f(i)}, [close('y', 1e-6, 1e-6)], flat)",
    ),
    "sum_in_f16": (
        "#include <cuda_fp16.h>\n" + _SUM + 'extern "C" __global__ void k(const __half* x, __half* y, int n) '
        "{ int r = blockIdx.x, t = threadIdx.x; float s = 0; for (int i = t; i < n; i += 32) "
        "s += __half2float(x[r * n + i]); s = sum(s); if (t == 0) y[r] = __float2half(s); }\n",
        "o = op(['x;f16;rows n;in', 'y;f16;rows;out'], normal, "
        "lambda c, i: {'y': i['x'].astype(np.float16).astype(float).sum(-1)}, [close('y', 1e-3, 1e-3)], row)",
    ),
    "without_a_reference": (
        _SUM + _row("k", _SOFTMAX) + _row("l", _SOFTMAX.replace("fmaxf(m, p[i])", "p[i] > m ? p[i] : m")),
        "o = op([X, Y], normal, None, [], row, ('k', 'l'), parents={'l': 'k'})",
    ),
    "log_without_a_reference": (
        _flat("k", "logf(v)") + _flat("l", "logf(v + 0.f)"),
        "o = op([X, Y], lambda c, r: {'x': r.random((c.rows, c.n))}, None, [], flat, ('k', 'l'), parents={'l': 'k'})",
    ),
}


def _pair(good: str, bad: str, reference: str, bound: str, output: str = "Y", **words: str) -> tuple[str, str]:
    """A right kernel, and one without a parent that is wrong."""
    inputs, launch = words.get("inputs", "normal"), words.get("launch", "row")
    more = "".join(f", {name}={text}" for name, text in words.items() if name not in ("inputs", "launch"))
    return _SUM + good + bad, (
        f"o = op([X, {output}], {inputs}, lambda c, i: {{'y': (lambda x: {reference})(f(i))}}, [{bound}], {launch}, "
        f"('good', 'bad'){more})"
    )


def _rows_pair(
    body: str, find: str, put: str, reference: str, bound: str, output: str = "Y", **words: str
) -> tuple[str, str]:
    assert find in body
    kind = "int* y" if "i32" in output else "float* y"
    return _pair(
        _row("good", body, kind), _row("bad", body.replace(find, put), kind), reference, bound, output, **words
    )


_MOST = "float m = -INFINITY; for (int i = t; i < n; i += 32) m = fmaxf(m, p[i]); m = most(m); if (t == 0) y[r] = m;"
_LEAST = (
    "float m = INFINITY; for (int i = t; i < n; i += 32) m = fminf(m, p[i]); "
    "for (int o = 16; o; o >>= 1) m = fminf(m, __shfl_xor_sync(~0u, m, o)); if (t == 0) y[r] = m;"
)
_SIZED = "axes=(('rows', 8), Axis('n', 128, at_least=1, at_most=4096))"
_LARGEST = "float m = 0; for (int i = t; i < n; i += 32) m = fmaxf(m, fabsf(p[i])); m = most(m); if (t == 0) y[r] = m;"

WRONG: dict[str, tuple[str, str]] = {
    "softmax_without_maximum": _rows_pair(_SOFTMAX, "m = most(m);", "m = 0;", "softmax(x)", "RelL2('y', 1e-6)"),
    "maximum_from_zero": _rows_pair(_MOST, "m = -INFINITY", "m = 0", "x.max(-1)", "exact('y')", _YROW),
    "minimum_from_zero": _rows_pair(_LEAST, "m = INFINITY", "m = 0", "x.min(-1)", "exact('y')", _YROW),
    "largest_without_absolute": _rows_pair(
        _LARGEST,
        "fabsf(p[i])",
        "p[i]",
        "np.abs(x).max(-1)",
        "exact('y')",
        _YROW,
        inputs="lambda c, r: {'x': np.where(np.arange(c.n) == 7, 9.0, r.normal(size=(c.rows, c.n)))}",
    ),
    "variance_of_squares": _rows_pair(
        _MEAN + "s = 0; for (int i = t; i < n; i += 32) s += (p[i] - mean) * (p[i] - mean); s = sum(s); "
        "if (t == 0) y[r] = s / n;",
        "s += (p[i] - mean) * (p[i] - mean); s = sum(s);",
        "s += p[i] * p[i]; s = sum(s) - n * mean * mean;",
        "x.var(-1)",
        "close('y', 0, 1e-5)",
        _YROW,
        inputs="lambda c, r: {'x': r.normal(size=(c.rows, c.n)) * 10}",
    ),
    "argmax_last_of_ties": _rows_pair(
        _ARGMAX, "p[i] > m", "p[i] >= m", "x.argmax(-1)", "exact('y')", '"y;i32;rows;out"'
    ),
    "argmax_any_lane": _rows_pair(
        _ARGMAX,
        "(q == m && a < at)",
        "(q == m && a > at && q > -1e30f)",
        "x.argmax(-1)",
        "exact('y')",
        '"y;i32;rows;out"',
    ),
    "partial_block_lost": _pair(
        _flat("good", "v * 2"),
        _flat("bad", "v * 2").replace("if (i < n)", "if (i < n / 128 * 128)"),
        "2 * x",
        "exact('y')",
        launch="flat",
        axes="(('rows', 1), Axis('n', 128, at_least=1, at_most=4096))",
    ),
    "first_warp_only": _pair(
        _row("good", _ROWSUM),
        _row("bad", _ROWSUM.replace("i < n", "i < n && i < 128")),
        "x.sum(-1)",
        "close('y', 1e-4, 1e-4)",
        _YROW,
        axes=_SIZED[5:],
    ),
    "softplus_that_overflows": _pair(
        _flat("good", "fmaxf(v, 0.f) + log1pf(expf(-fabsf(v)))"),
        _flat("bad", "logf(1 + expf(v))"),
        "np.logaddexp(0, x)",
        "close('y', 1e-6, 1e-5)",
        launch="flat",
    ),
    "tanh_by_exponentials": _pair(
        _flat("good", "tanhf(v)"),
        _flat("bad", "(expf(v) - expf(-v)) / (expf(v) + expf(-v))"),
        "np.tanh(x)",
        "close('y', 1e-6, 1e-5)",
        launch="flat",
    ),
    "sum_in_half": (
        "#include <cuda_fp16.h>\n"
        + "".join(
            f'extern "C" __global__ void {name}(const __half* x, float* y, int n) {{ int r = blockIdx.x; '
            f"if (threadIdx.x == 0) {{ {kind} s = 0.f; for (int i = 0; i < n; ++i) s = s + ({kind})x[r * n + i]; "
            "y[r] = s; } }\n"
            for name, kind in (("good", "float"), ("bad", "__half"))
        ),
        f"o = op(['x;f16;rows n;in', {_YROW}], normal, lambda c, i: {{'y': i['x'].astype(np.float16).astype(float)"
        ".sum(-1)}, [close('y', 0.2, 1e-3)], row, ('good', 'bad'))",
    ),
    "norm_without_epsilon": _rows_pair(
        _LAYERNORM,
        " + 1e-5f",
        "",
        _LAYERNORM64,
        "close('y', 2e-5, 1e-4)",
        inputs="lambda c, r: {'x': np.maximum(r.normal(size=(c.rows, c.n)), -1)}",
    ),
    "scale_of_a_zero_row": _rows_pair(
        "float m = 0; for (int i = t; i < n; i += 32) m = fmaxf(m, fabsf(p[i])); m = most(m); "
        "for (int i = t; i < n; i += 32) y[r * n + i] = p[i] / fmaxf(m, 1e-20f);",
        "fmaxf(m, 1e-20f)",
        "m",
        "x / np.maximum(np.abs(x).max(-1, keepdims=True), 1e-20)",
        "close('y', 1e-6, 1e-6)",
    ),
    "clipped_too_early": _pair(
        _flat("good", "v"), _flat("bad", "fminf(fmaxf(v, -100.f), 100.f)"), "x", "exact('y')", launch="flat"
    ),
    "flushed_small": _pair(
        _flat("good", "v"), _flat("bad", "fabsf(v) < 1e-6f ? 0 : v"), "x", "exact('y')", launch="flat"
    ),
    "sign_by_division": _pair(
        _flat("good", "(float)((v > 0) - (v < 0))"),
        _flat("bad", "v / fabsf(v)"),
        "np.sign(x)",
        "exact('y')",
        launch="flat",
    ),
}
