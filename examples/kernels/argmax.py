"""Argmax: where several elements are the greatest, any of them is right."""

from audit import ArgMax, Axis, Buffer, Launch, Operator, Source, Unrelated, Variant


def variant(name, **more):
    return Variant(
        name, Source("kernels/argmax.cu"),
        launches=lambda c: [Launch(f"argmax_{name}", (c.rows,), (32,), 0, ("x", "index", c.n))], **more,
    )  # fmt: skip


argmax = Operator(
    "argmax",
    axes=[Axis("rows", 16, at_least=1), Axis("n", 500, at_least=1)],
    buffers=lambda c: [Buffer("x", "f32", "rows n", "in"), Buffer("index", "i32", "rows", "out")],
    inputs=lambda c, rng: {"x": rng.normal(size=(c.rows, c.n))},
    bounds=[ArgMax("index", scores="x")],
    variants=[
        variant("control"),
        variant("last", parent="control", relation=Unrelated(), note="the last of several, not the first"),
        variant("from_zero", parent="control", relation=Unrelated(), note="WRONG: begins at 0"),
    ],
)
