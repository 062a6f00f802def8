"""Functions that a compiler's headers call by name and that a GPU's library defines: ours take their place.

The names are those that the CUDA headers of clang call. A function of the C library stands behind most of them, as in
the CPU's headers: accurate, but not a GPU's bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

# name without __nv_: types of the result and of the arguments, and the expression.
_FUNCTIONS: dict[str, tuple[str, str]] = {}


def _add(signature: str, expression: str, *names: str) -> None:
    for name in names:
        _FUNCTIONS[name] = (signature, expression.replace("NAME", name.removesuffix("f")).replace("FULL", name))


_NAMES = """
    acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp10 exp2 expm1 floor lgamma log log10 log1p
    log2 nearbyint rint round sin sinh sqrt tan tanh tgamma trunc j0 j1 y0 y1 logb
"""
_UNARY = _NAMES.split()
for _name in _UNARY:
    _add("f32 f32", "canonical(::NAMEf({0}))", f"{_name}f")
    _add("f64 f64", "::NAME({0})", _name)
for _name in ["atan2", "copysign", "fdim", "fmod", "hypot", "nextafter", "pow", "remainder"]:
    _add("f32 f32 f32", "canonical(::NAMEf({0}, {1}))", f"{_name}f")
    _add("f64 f64 f64", "::NAME({0}, {1})", _name)
_add("f32 f32 f32", "maximum<false, false>({0}, {1})", "fmaxf")
_add("f32 f32 f32", "minimum<false, false>({0}, {1})", "fminf")
_add("f64 f64 f64", "maximum<false, false>({0}, {1})", "fmax")
_add("f64 f64 f64", "minimum<false, false>({0}, {1})", "fmin")
_add("f32 f32", "without_sign({0})", "fabsf")
_add("f64 f64", "without_sign({0})", "fabs")
_add("f32 f32 f32 f32", "canonical(__builtin_fmaf({0}, {1}, {2}))", "fmaf", "fmaf_rn", "fmaf_ieee_rn")
_add("f64 f64 f64 f64", "__builtin_fma({0}, {1}, {2})", "fma", "fma_rn")
_add("f32 f32", "canonical(1.0f / __builtin_sqrtf({0}))", "rsqrtf")
_add("f64 f64", "1.0 / __builtin_sqrt({0})", "rsqrt")
_add("f32 f32", "sat({0})", "saturatef")
_add("f32 f32 s32", "canonical(::NAMEf({0}, {1}))", "ldexpf", "scalbnf")
_add("f64 f64 s32", "::NAME({0}, {1})", "ldexp", "scalbn")
_add("f32 f32 s32", "canonical(integer_power({0}, {1}))", "powif")
_add("f64 f64 s32", "integer_power({0}, {1})", "powi")
_add("s32 f32", "::ilogbf({0})", "ilogbf")
_add("s32 f64", "::ilogb({0})", "ilogb")
_add("f32 s32 f32", "canonical(::jnf({0}, {1}))", "jnf")
_add("f64 s32 f64", "::jn({0}, {1})", "jn")
_add("f32 s32 f32", "canonical(::ynf({0}, {1}))", "ynf")
_add("f64 s32 f64", "::yn({0}, {1})", "yn")
_add("f32 f32", "sine_of_pi({0})", "sinpif")
_add("f64 f64", "sine_of_pi({0})", "sinpi")
_add("f32 f32", "cosine_of_pi({0})", "cospif")
_add("f64 f64", "cosine_of_pi({0})", "cospi")
_add("f32 f32", "inverse_erf({0})", "erfinvf")
_add("f64 f64", "inverse_erf({0})", "erfinv")
_add("f32 f32", "inverse_erfc({0})", "erfcinvf")
_add("f64 f64", "inverse_erfc({0})", "erfcinv")
_add("f32 f32", "scaled_erfc({0})", "erfcxf")
_add("f64 f64", "scaled_erfc({0})", "erfcx")
_add("f32 f32", "normal_cdf({0})", "normcdff")
_add("f64 f64", "normal_cdf({0})", "normcdf")
_add("f32 f32", "inverse_normal_cdf({0})", "normcdfinvf")
_add("f64 f64", "inverse_normal_cdf({0})", "normcdfinv")
_add("f32 f32", "1.0f / ::cbrtf({0})", "rcbrtf")
_add("f64 f64", "1.0 / ::cbrt({0})", "rcbrt")
_add("f32 f32 f32", "(f32)(1.0 / ::hypot((f64){0}, (f64){1}))", "rhypotf")
_add("f64 f64 f64", "1.0 / ::hypot({0}, {1})", "rhypot")
_add("f32 f32 f32 f32", "norm_of({0}, {1}, {2})", "norm3df")
_add("f64 f64 f64 f64", "norm_of({0}, {1}, {2})", "norm3d")
_add("f32 f32 f32 f32", "1.0f / norm_of({0}, {1}, {2})", "rnorm3df")
_add("f64 f64 f64 f64", "1.0 / norm_of({0}, {1}, {2})", "rnorm3d")
_add("f32 f32 f32 f32 f32", "norm_of({0}, {1}, {2}, {3})", "norm4df")
_add("f64 f64 f64 f64 f64", "norm_of({0}, {1}, {2}, {3})", "norm4d")
_add("f32 f32 f32 f32 f32", "1.0f / norm_of({0}, {1}, {2}, {3})", "rnorm4df")
_add("f64 f64 f64 f64 f64", "1.0 / norm_of({0}, {1}, {2}, {3})", "rnorm4d")
_add("f32 f32 f32", "canonical({0} / {1})", "fast_fdividef")
for _name in ["cos", "exp", "exp10", "log", "log10", "log2", "sin", "tan"]:
    _add("f32 f32", f"canonical(::{_name}f({{0}}))", f"fast_{_name}f")
_add("f32 f32 f32", "canonical(::powf({0}, {1}))", "fast_powf")
for _name in ("isinf", "isnan", "isfinite"):
    for _suffix, _type in (("f", "f32"), ("d", "f64")):
        _add(f"s32 {_type}", f"is_{_name[2:]}_value({{0}}) ? 1 : 0", f"{_name}{_suffix}")
_add("s32 f32", "is_finite_value({0}) ? 1 : 0", "finitef")
_add("s32 f32", "(s32)(bits({0}) >> 31)", "signbitf")
_add("s32 f64", "(s32)(bits({0}) >> 63)", "signbitd")
_add("s64 f32", "to_integer<s64>(integral_rni({0}))", "llrintf")
_add("s64 f64", "to_integer<s64>(integral_rni({0}))", "llrint")
_add("s64 f32", "to_integer<s64>(::roundf({0}))", "llroundf")
_add("s64 f64", "to_integer<s64>(::round({0}))", "llround")
for _mode in ("rn", "rz", "rd", "ru"):
    _rounding = {"rn": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}[_mode]
    _integral = {"rn": "rni", "rz": "rzi", "rd": "rmi", "ru": "rpi"}[_mode]
    for _short, _type in (("f", "f32"), ("d", "f64")):
        for _operation in ("add", "sub", "mul", "div"):
            _add(
                f"{_type} {_type} {_type}",
                f"canonical(directed_{_operation}<{_rounding}>({{0}}, {{1}}))",
                f"{_short}{_operation}_{_mode}",
            )
        _add(f"{_type} {_type}", f"canonical(directed_div<{_rounding}>(({_type})1, {{0}}))", f"{_short}rcp_{_mode}")
        _add(f"{_type} {_type}", f"canonical(directed_sqrt<{_rounding}>({{0}}))", f"{_short}sqrt_{_mode}")
        for _to, _target in (("int", "s32"), ("uint", "u32"), ("ll", "s64"), ("ull", "u64")):
            _from = {"f": "float", "d": "double"}[_short]
            _add(f"{_target} {_type}", f"to_integer<{_target}>(integral_{_integral}({{0}}))", f"{_from}2{_to}_{_mode}")
            _add(f"{_type} {_target}", f"directed_{_type}<{_rounding}>({{0}})", f"{_to}2{_from}_{_mode}")
    if _mode != "rn":
        _add("f32 f32 f32 f32", f"canonical(directed_fma<{_rounding}>({{0}}, {{1}}, {{2}}))", f"fmaf_{_mode}")
        _add("f64 f64 f64 f64", f"directed_fma<{_rounding}>({{0}}, {{1}}, {{2}})", f"fma_{_mode}")
    _add("f32 f64", f"canonical(directed_f32<{_rounding}>({{0}}))", f"double2float_{_mode}")
_add("f32 f32", "canonical(1.0f / __builtin_sqrtf({0}))", "frsqrt_rn")
_add("s32 f64", "(s32)(bits({0}) >> 32)", "double2hiint")
_add("s32 f64", "(s32)bits({0})", "double2loint")
_add("f64 s32 s32", "as_f64((u64)(u32){0} << 32 | (u32){1})", "hiloint2double")
_add("s32 f32", "(s32)bits({0})", "float_as_int")
_add("u32 f32", "bits({0})", "float_as_uint")
_add("f32 s32", "as_f32((u32){0})", "int_as_float")
_add("f32 u32", "as_f32({0})", "uint_as_float")
_add("s64 f64", "(s64)bits({0})", "double_as_longlong")
_add("f64 s64", "as_f64((u64){0})", "longlong_as_double")
_add("s32 s32", "{0} == 0 ? 32 : __builtin_clz((u32){0})", "clz")
_add("s32 s64", "{0} == 0 ? 64 : __builtin_clzll((u64){0})", "clzll")
_add("s32 s32", "__builtin_popcount((u32){0})", "popc")
_add("s32 s64", "__builtin_popcountll((u64){0})", "popcll")
_add("s32 s32", "__builtin_ffs({0})", "ffs")
_add("s32 s64", "__builtin_ffsll({0})", "ffsll")
_add("u32 u32", "reversed<u32>({0})", "brev")
_add("u64 u64", "reversed<u64>({0})", "brevll")
_add("u32 u32 u32 u32", "permuted({0}, {1}, {2} & 0x7777)", "byte_perm")
_add("s32 s32 s32", "(s32)((s64){0} * {1} >> 32)", "mulhi")
_add("u32 u32 u32", "(u32)((u64){0} * {1} >> 32)", "umulhi")
_add("s64 s64 s64", "(s64)((s128){0} * {1} >> 64)", "mul64hi")
_add("u64 u64 u64", "(u64)((u128){0} * {1} >> 64)", "umul64hi")
_add("s32 s32 s32", "({0} << 8 >> 8) * ({1} << 8 >> 8)", "mul24")
_add("u32 u32 u32", "({0} & 0xFFFFFF) * ({1} & 0xFFFFFF)", "umul24")
_add("u32 s32 s32 u32", "({0} < {1} ? (u32){1} - (u32){0} : (u32){0} - (u32){1}) + {2}", "sad")
_add("u32 u32 u32 u32", "({0} < {1} ? {1} - {0} : {0} - {1}) + {2}", "usad")
_add("s32 s32 s32", "(s32)(((s64){0} + {1}) >> 1)", "hadd")
_add("u32 u32 u32", "(u32)(((u64){0} + {1}) >> 1)", "uhadd")
_add("s32 s32 s32", "(s32)(((s64){0} + {1} + 1) >> 1)", "rhadd")
_add("u32 u32 u32", "(u32)(((u64){0} + {1} + 1) >> 1)", "urhadd")
_add("s32 s32 s32 s32", "dot4<true, true>((u32){0}, (u32){1}, {2})", "idp4a_s_s_impl")
_add("u32 u32 u32 u32", "dot4<false, false>({0}, {1}, (s32){2})", "idp4a_u_u_impl")
for _half, _shift in (("lo", 0), ("hi", 16)):
    _add("s32 s32 s32 s32", f"dot2<true, true>((u32){{0}}, (u32){{1}} >> {_shift}, {{2}})", f"idp2a_{_half}_s_s_impl")
    _add("u32 u32 u32 u32", f"dot2<false, false>({{0}}, {{1}} >> {_shift}, (s32){{2}})", f"idp2a_{_half}_u_u_impl")
for _prefix, _type in (("", "s32"), ("u", "u32"), ("ll", "s64"), ("ull", "u64")):
    _add(f"{_type} {_type} {_type}", "{1} < {0} ? {1} : {0}", f"{_prefix}min")
    _add(f"{_type} {_type} {_type}", "{1} > {0} ? {1} : {0}", f"{_prefix}max")
_add("s32 s32", "{0} < 0 ? -{0} : {0}", "abs")
_add("s64 s64", "{0} < 0 ? -{0} : {0}", "llabs")
_add("f32 f32 f32", "canonical(::fmodf({0}, {1}))", "fmodf")
_add("u16 f32", "rounded<f16>({0}).bits", "float2half_rn")
_add("f32 u16", "widened(f16{{0}})", "half2float")


# Functions with a calling convention of their own: their arguments stay where they are.
_CALLED = {
    "__assertfail": "assertion_failed({args}, SITE)",
    "vprintf": "print_formatted({args})",
    "malloc": "allocate({args})",
    "free": "release({args})",
    "_Znwm": "allocate({args})",
    "_Znam": "allocate({args})",
    "_ZdlPv": "release({args})",
    "_ZdaPv": "release({args})",
    "_ZdlPvm": "release({args})",
    "_ZdaPvm": "release({args})",
    "__ubsan_handle_divrem_overflow_minimal_abort": "simt::undefined_division(SITE)",
    "__ubsan_handle_divrem_overflow_minimal": "simt::undefined_division(SITE)",
    "__ubsan_handle_missing_return_minimal_abort": "simt::missing_return(SITE)",
    "__ubsan_handle_missing_return_minimal": "simt::missing_return(SITE)",
    "__nv_sincosf": "sine_and_cosine<f32>({args})",
    "__nv_sincos": "sine_and_cosine<f64>({args})",
    "__nv_fast_sincosf": "sine_and_cosine<f32>({args})",
    "__nv_sincospif": "sine_and_cosine_of_pi<f32>({args})",
    "__nv_sincospi": "sine_and_cosine_of_pi<f64>({args})",
    "__nv_frexpf": "split_exponent<f32>({args})",
    "__nv_frexp": "split_exponent<f64>({args})",
    "__nv_modff": "split_integer<f32>({args})",
    "__nv_modf": "split_integer<f64>({args})",
    "__nv_remquof": "remainder_and_quotient<f32>({args})",
    "__nv_remquo": "remainder_and_quotient<f64>({args})",
}


def call_of(name: str, parameters: Sequence[str], site: str) -> str | None:
    """The C++ of a call with the addresses of its results and arguments; None for a function that we do not have."""
    if name in _CALLED:
        return _CALLED[name].replace("{args}", ", ".join(parameters)).replace("SITE", f"simt::Site{site}") + ";"
    if not name.startswith("__nv_") or name.removeprefix("__nv_") not in _FUNCTIONS:
        return None
    signature, expression = _FUNCTIONS[name.removeprefix("__nv_")]
    result, *types = signature.split()
    for number, kind in enumerate(types):
        expression = expression.replace(f"{{{number}}}", f"argument<{kind}>({parameters[number + 1]})")
    return f"give<{result}>({parameters[0]}, {expression});"
