"""On a GPU: a captured graph produces the bytes of the plain launches, and the CPU does where that is promised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from audit.checks.bytes import compare_bytes, tallied_once
from audit.checks.result import Note, Result, settled
from audit.checks.view import View
from audit.compile.host import TARGETS
from audit.compile.tensor_cores import model_of


def graph(view: View) -> Iterator[Result]:
    """One graph, captured before the first step and replayed for each, produces the bytes of the plain launches."""
    pairs = zip(view.graph, view.steps, strict=False)
    found = [compare_bytes(view, step, view, plain, "graph", "plain launches") for step, plain in pairs]
    yield from tallied_once(settled(found))


def host(view: View) -> Iterator[Result]:
    """The host backend, from the same source and inputs, produces the bytes of the device, as the operator promises.

    A difference is a finding only if both compute tensor-core products by the same model. If the models differ, or the
    model of the device's instructions is unknown, a difference is inconclusive. So is a host arm that did not run.
    """
    if not view.operator.same_on_host or not (view.on_host or view.host_reason):
        return
    if view.host_reason:
        yield Result("host", "inconclusive", f"not compared with the CPU, as promised: {view.host_reason}")
        return
    comparable, reason = _models(view)
    for result in tallied_once(settled(_against_host(view))):
        verdict = result.verdict if comparable or result.verdict == "pass" else "inconclusive"
        yield msgspec.structs.replace(result, verdict=verdict, detail=f"{result.detail}; {reason}")


def host_notes(view: View) -> Iterator[Note]:
    """How far the CPU is from the GPU where the operator promises nothing, or why the two were not compared."""
    if view.operator.same_on_host:
        return
    if view.host_reason:
        yield Note("host", f"not compared with a CPU: {view.host_reason}")
    for result in _against_host(replace(view, steps=view.own_steps)):
        yield Note("host", result.detail, result.step, result.largest)


def _against_host(view: View) -> Iterator[Result]:
    pairs = zip(view.steps, view.on_host, strict=False)
    return (compare_bytes(view, step, view, other, "host", "the host") for step, other in pairs)


def _models(view: View) -> tuple[bool, str]:
    """Whether device and host must produce the same bytes, and the reason in words."""
    if view.build is None or view.host_build is None:
        return False, "the record of a build is missing"
    if view.build.contracted or view.build.fast_math:
        what = "--use_fast_math is declared" if view.build.fast_math else "the compilers may fuse a * b + c"
        return False, f"{what}, each compiler in its own way; declare -fmad=false where both must leave the same bytes"
    target = TARGETS.get(view.host_build.arch)
    on_host = target.model if target else "unknown"
    opcodes = view.build.code.tensor_core if view.build.code else None
    if opcodes is None:
        return False, f"tensor-core instructions unknown without a disassembler; the host's model is {on_host}"
    if not opcodes:
        return True, "the code has no tensor-core instruction"
    models = {opcode: model_of(opcode, view.build.arch) for opcode in opcodes}
    by_opcode = ", ".join(
        f"{opcode} on {view.build.arch}: {model or 'no model known'}" for opcode, model in models.items()
    )
    return set(models.values()) == {on_host}, f"tensor-core model of {by_opcode}; of the host: {on_host}"
