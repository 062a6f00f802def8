"""On a GPU: one captured graph, and the CPU, leave the bytes of the plain launches."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from audit.checks.bytes import compare, tallied_once
from audit.checks.result import Result
from audit.checks.view import View
from audit.compile.host import TARGETS
from audit.compile.tensor_cores import model_of


def graph(view: View) -> Iterator[Result]:
    """One graph, captured before the first step and replayed for each, gives the bytes of the plain launches."""
    pairs = zip(view.graph, view.steps, strict=False)
    yield from tallied_once(compare(view, step, view, plain, "graph", "plain launches") for step, plain in pairs)


def host(view: View) -> Iterator[Result]:
    """The host backend, from the same source and inputs, gives the bytes of the device.

    Other bytes are a finding only where both computed tensor-core products by the same model: with another model, or
    where it is not known which one the device's instructions obey, they are inconclusive. Equal bytes are equal.
    """
    comparable, told = _models(view)
    pairs = zip(view.steps, view.on_host, strict=False)
    for result in tallied_once(compare(view, step, view, other, "host", "the host") for step, other in pairs):
        verdict = result.verdict if comparable or result.verdict == "pass" else "inconclusive"
        yield msgspec.structs.replace(result, verdict=verdict, detail=f"{result.detail}; {told}")


def _models(view: View) -> tuple[bool, str]:
    """Whether device and host must give the same bytes, and a sentence that says why."""
    if view.build is None or view.host_build is None:
        return False, "it is not known what was built"
    target = TARGETS.get(view.host_build.arch)
    on_host = target.model if target else "unknown"
    opcodes = view.build.code.tensor_core if view.build.code else None
    if opcodes is None:
        return False, f"no disassembler says which tensor-core instructions ran; the host's model is {on_host}"
    if not opcodes:
        return True, "no tensor-core instruction is in the code"
    models = {opcode: model_of(opcode, view.build.arch) for opcode in opcodes}
    told = ", ".join(f"{opcode} on {view.build.arch}: {model or 'no model known'}" for opcode, model in models.items())
    return set(models.values()) == {on_host}, f"tensor-core model of {told}; of the host: {on_host}"
