"""Top-k: a set in any order, so that variants are judged by what they found and not by their bytes."""

from audit import Axis, Buffer, Launch, Operator, Source, TopK, Unrelated, Variant


def variant(name, **more):
    args = ("x", "values", "indices")
    return Variant(
        name, Source("kernels/topk.cu"),
        launches=lambda c: [Launch(f"topk_{name}", (c.rows,), (32,), 0, (*args, c.n, c.k))], **more,
    )  # fmt: skip


topk = Operator(
    "topk",
    axes=[Axis("rows", 5, at_least=1), Axis("n", 300, at_least=8), Axis("k", 8, values=(1, 8))],
    buffers=lambda c: [
        Buffer("x", "f32", "rows n", "in"),
        Buffer("values", "f32", "rows k", "out"),
        Buffer("indices", "i32", "rows k", "out"),
    ],
    inputs=lambda c, rng: {"x": rng.normal(size=(c.rows, c.n))},
    bounds=[TopK("values", "indices", scores="x")],
    variants=[
        variant("control"),
        variant("ascending", parent="control", relation=Unrelated(), note="the same set, the least first"),
        variant("distinct", parent="control", relation=Unrelated(), note="WRONG: equal values are left out"),
    ],
)
