"""The loss of small probabilities: below the range of f16 and its residual, and below the floor of exp.

**P and R** (grouped). P = half(p) and R = half(d) with d = (p - P)*2048; what the products see is P + R*2^-11.
Let 0 < p <= 1 and 2^e <= p < 2^(e+1). p - P is exact in f32 (a rounding error always fits the wider format), and so
is d (a shift). So the error of P + R*2^-11 is that of rounding d, times 2^-11.

- e >= -14: P is normal, |p - P| <= 2^(e-11), |d| <= 2^e. At |d| = 2^e, R is exact; below it, half an ulp of d is at
  most 2^(e-12), or 2^-25 where R is subnormal. Error: at most max(2^(e-23), 2^-36).
- e < -14: P is a multiple of 2^-24, |d| <= 2^-14, half an ulp of d is 2^-25. Error: at most 2^-36.
- p <= 2^-36: P and R are 0 (d = 2^-25 is a tie, which goes to even). The error is p itself.

Together |p - (P + R*2^-11)| <= max(PHI*p, min(p, ETA)), PHI = 2^-23, ETA = 2^-36, and 2^-36 is reached at p = 2^-36.
Bound 3 has PHI*p in its first term; what is left is `excess` = min(p, ETA) - PHI*p, and nothing from p = 2^-13 on.
p is relative to the running maximum of its tile. Later rescalings shrink p and its error alike, so taking p relative
to the maximum of the whole split does not lower the bound.

**The product's pinned exponents.** A subnormal P enters a step with exponent -14, so the step may cut its terms to
multiples of 2^(e_v - 14 - F), e_v the exponent of the largest V there: as much as PHI would be for a normal P, but now
P may be as small as 2^-24. Terms P*V are multiples of 2^-24 * 2^-9, so none is cut unless e_v > F - 19; C is. Of
16/L steps of L products for one K16 half, each cuts C and, where |V| >= 2^(F-18), L - 1 terms; one of them, the
largest, is whole. In units of ETA*|V|: (16/L) * 2^(22-F) * (1 + (L-1)*[|V| >= 2^(F-18)]), which is 1/8, or 2 for
|V| >= 128, on sm_90. Pinned R do the same at 2^-11 of that, beside R itself.

**The floor** (both operators). exp(max(x, -80)) raises weights below e^-80 to it: p itself, what rescales a split so
far, and what a split gets in the merge. `FLOOR` is the power of two above e^-80, which leaves room for the rounding of
such a weight.
"""

from .array_library import DeviceArray
from .tensor_core import TensorCore

PHI = 2.0**-23
ETA = 2.0**-36
FLOOR = 2.0**-115


def grouped_loss(p: DeviceArray, visible: DeviceArray, values: DeviceArray, model: TensorCore) -> DeviceArray:
    """sum_j excess(p_j) * gain(v_j) * |v_j|, f64[lines, D]: what rounding P and R loses beyond PHI*p.

    p f64[lines, tokens], relative to the largest; values f64[tokens, D]; invisible tokens lose nothing. All three
    belong to one library.
    """
    excess = (p.clip(FLOOR, ETA) - PHI * p).clip(0) * visible
    size = abs(values)
    steps = 16 // model.length
    cut = 1 + (model.length - 1) * (size >= 2.0 ** (model.fraction_bits - 18))
    gain = 1 + steps * 2.0 ** (22 - model.fraction_bits) * cut
    return excess @ (gain * size)


def scalar_loss(p: DeviceArray, visible: DeviceArray, values: DeviceArray) -> DeviceArray:
    """sum_j max(FLOOR - p_j, 0) * |v_j|, f64[lines, D]; p and values as for `grouped_loss`. p stays in f32."""
    return ((FLOOR - p).clip(0) * visible) @ abs(values)
