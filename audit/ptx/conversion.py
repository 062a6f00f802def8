"""cvt, by chapter 9.7.9 of the PTX ISA: integers saturate, NaN becomes 0 or the smallest integer as written there."""

from __future__ import annotations

from audit.ptx.rule import rules

_INTEGERS = "{u8,u16,u32,u64,s8,s16,s32,s64}"
_TO_INTEGER = "{rni,rzi,rmi,rpi}"
_ROUNDINGS = "{rn,rz,rm,rp}"

CONVERSION = rules(
    [
        (f"cvt.{_INTEGERS}.{_INTEGERS}", "$1 = $2", "{0}"),
        (f"cvt.sat.{_INTEGERS}.{_INTEGERS}", "$1 = $2", "clamped_to<$1>({0})"),
        (f"cvt.{_TO_INTEGER}{{.ftz,}}{{.sat,}}.{_INTEGERS}.f32", "$4 = f32", "to_integer<$4>(integral_$1($2({0})))"),
        (f"cvt.{_TO_INTEGER}{{.sat,}}.{_INTEGERS}.f64", "$3 = f64", "to_integer<$3>(integral_$1({0}))"),
        (
            f"cvt.{_TO_INTEGER}{{.sat,}}.{_INTEGERS}.{{f16,bf16}}",
            "$3 = $4",
            "to_integer<$3>(integral_$1(widened({0})))",
        ),
        (f"cvt.rn{{.ftz,}}{{.sat,}}.f32.{_INTEGERS}", "f32 = $3", "$2((f32){0})"),
        (f"cvt.{{rz,rm,rp}}{{.ftz,}}{{.sat,}}.f32.{_INTEGERS}", "f32 = $4", "$3(directed_f32<$1>({0}))"),
        (f"cvt.rn{{.sat,}}.f64.{_INTEGERS}", "f64 = $2", "$1((f64){0})"),
        (f"cvt.{{rz,rm,rp}}.f64.{_INTEGERS}", "f64 = $2", "directed_f64<$1>({0})"),
        (f"cvt.{{rn,rz}}{{.sat,}}.{{f16,bf16}}.{_INTEGERS}", "$3 = $4", "$2(narrowed<$3, Rounding::$1>({0}))"),
        ("cvt{.ftz,}{.sat,}.f32.f32", "f32 = f32", "$2($1(canonical({0})))"),
        (f"cvt.{_TO_INTEGER}{{.ftz,}}{{.sat,}}.f32.f32", "f32 = f32", "$3($2(canonical(integral_$1($2({0})))))"),
        (f"cvt.{_TO_INTEGER}{{.sat,}}.f64.f64", "f64 = f64", "$2(integral_$1({0}))"),
        ("cvt{.sat,}.f64.f64", "f64 = f64", "$1({0})"),
        (
            f"cvt.{_TO_INTEGER}{{.ftz,}}{{.sat,}}.f16.f16",
            "f16 = f16",
            "$3($2(rounded<f16>(integral_$1(widened({0})))))",
        ),
        (f"cvt.{_TO_INTEGER}.bf16.bf16", "bf16 = bf16", "rounded<bf16>(integral_$1(widened({0})))"),
        ("cvt{.ftz,}{.sat,}.f16.f16", "f16 = f16", "$2($1({0}))"),
        ("cvt{.ftz,}{.sat,}.f32.{f16,bf16}", "f32 = $3", "$2(widened({0}))"),
        ("cvt{.sat,}.f64.{f16,bf16}", "f64 = $2", "$1((f64)widened({0}))"),
        ("cvt{.ftz,}{.sat,}.f64.f32", "f64 = f32", "$2((f64)$1({0}))"),
        ("cvt.rn{.ftz,}{.sat,}.f32.f64", "f32 = f64", "$2($1(canonical((f32){0})))"),
        ("cvt.{rz,rm,rp}{.ftz,}{.sat,}.f32.f64", "f32 = f64", "$3($2(canonical(directed_f32<$1>({0}))))"),
        ("cvt.rn{.ftz,}{.sat,}.f16.f32", "f16 = f32", "$2(rounded<f16>($1({0})))"),
        ("cvt.rz{.ftz,}{.sat,}.f16.f32", "f16 = f32", "$2(narrowed<f16, Rounding::rz>($1({0})))"),
        ("cvt.{rn,rz}{.sat,}.{f16,bf16}.f64", "$3 = f64", "$2(narrowed<$3, Rounding::$1>({0}))"),
        ("cvt.{rm,rp}{.ftz,}{.sat,}.f16.f32", "f16 = f32", "$3(narrowed<f16, Rounding::$1>($2({0})))"),
        ("cvt.rn{.relu,}.bf16.f32", "bf16 = f32", "$1(rounded<bf16>({0}))"),
        ("cvt.rz{.relu,}.bf16.f32", "bf16 = f32", "$1(narrowed<bf16, Rounding::rz>({0}))"),
        ("cvt.{rn,rz}.relu.f16.f32", "f16 = f32", "relu(narrowed<f16, Rounding::$1>({0}))"),
        (
            "cvt.{rn,rz}{.relu,}.{f16x2,bf16x2}.f32",
            "$3 = f32 f32",
            "joined($2(narrowed<half_of_$3, Rounding::$1>({1})), $2(narrowed<half_of_$3, Rounding::$1>({0})))",
        ),
        ("cvt.rn.bf16.f16", "bf16 = f16", "rounded<bf16>(widened({0}))"),
        ("cvt.{rn,rz}.f16.bf16", "f16 = bf16", "narrowed<f16, Rounding::$1>(widened({0}))"),
        ("cvt.{rna,rn,rz}{.relu,}.tf32.f32", "b32 = f32", "rounded_to_tf32<Rounding::$1>({0}, is_$2)"),
        (
            "cvt.rn.satfinite{.relu,}.{e4m3x2,e5m2x2}.f32",
            "b16 = f32 f32",
            "(u32)to_$2($1({0})) << 8 | to_$2($1({1}))",
        ),
        (
            "cvt.rn.satfinite{.relu,}.{e4m3x2,e5m2x2}.f16x2",
            "b16 = f16x2",
            "(u32)to_$2($1(widened(high({0})))) << 8 | to_$2($1(widened(low({0}))))",
        ),
        (
            "cvt.rn{.relu,}.f16x2.{e4m3x2,e5m2x2}",
            "f16x2 = b16",
            "joined($1(rounded<f16>(from_$2({0} & 255))), $1(rounded<f16>(from_$2({0} >> 8))))",
        ),
    ]
)
