"""Branches, calls, barriers and the instructions of a warp, by chapters 9.7.12 and 9.7.13 of the PTX ISA."""

from __future__ import annotations

from audit.ptx.emit import Emitter, identifier
from audit.ptx.libdevice import call_of
from audit.ptx.rule import Rule
from audit.ptx.syntax import Immediate, Instruction, Operand, Register, Sink, Symbol, Vector


def label(name: str) -> str:
    """The C++ label of a PTX label."""
    return f"L_{identifier(name)}"


def _branch(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    target = instruction.operands[0]
    if not isinstance(target, Symbol):
        raise e.refusal(instruction, "a branch to a register")
    return f"goto {label(target.name)};"


def _branch_by_index(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    index, table = instruction.operands
    if not isinstance(table, Symbol):
        raise e.refusal(instruction, "brx.idx without a list of labels")
    return f"switch ({e.value(instruction, index, 'u32')}) {{ TARGETS_{identifier(table.name)} }}"


def _return(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    if instruction.mnemonic == "exit" and not e.function.is_entry:
        return f"simt::trap({e.site(instruction)});"  # compilers write it only behind what never returns
    return "return;"


def _call(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    operands = list(instruction.operands)
    results = _listed(operands)
    callee = operands.pop(0)
    arguments = _listed(operands)
    names = [_parameter(e, instruction, one) for one in (*results, *arguments)]
    if isinstance(callee, Register):
        types = ", ".join(["unsigned char*"] * len(names))
        return f"((void (*)({types}))({e.value(instruction, callee, 'u64')}))({', '.join(names)});"
    if not isinstance(callee, Symbol):
        raise e.refusal(instruction, "a call of something that is no function")
    function = e.module.functions.get(callee.name)
    if function is not None and function.body is not None and not function.is_entry:
        return f"{identifier(callee.name)}({', '.join(names)});"
    provided = call_of(callee.name, names, e.site(instruction))
    if provided is None:
        raise e.refusal(instruction, f"the function `{callee.name}`, which this PTX does not define")
    return provided


def _listed(operands: list[Operand]) -> tuple[Operand, ...]:
    """Takes away a list in parentheses."""
    first = operands[0] if operands else None
    if not isinstance(first, Vector):
        return ()
    operands.pop(0)
    return first.items


def _parameter(e: Emitter, instruction: Instruction, operand: object) -> str:
    if not isinstance(operand, Symbol):
        raise e.refusal(instruction, "a call with an argument that is no variable in .param")
    return f"(unsigned char*)({e.symbol(instruction, operand)})"


def _barrier(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    operation = choices[-1].lstrip(".")
    number, *count = instruction.operands
    if isinstance(number, Immediate) and number.value == 0 and not count and operation == "sync":
        return f"simt::block_barrier(simt::Barrier::sync, false, {e.site(instruction)});"
    threads = e.value(instruction, count[0], "u32") if count else "block_threads()"
    waits = "true" if operation == "sync" else "false"
    counted = "true" if count else "false"
    return f"barrier({e.value(instruction, number, 'u32')}, {threads}, {waits}, {counted}, {e.site(instruction)});"


def _barrier_reduction(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    operation, kind = choices[-2].lstrip("."), choices[-1].lstrip(".")
    target, number, *count, predicate = instruction.operands
    if count or not isinstance(number, Immediate) or number.value != 0:
        raise e.refusal(instruction, f"`{instruction.mnemonic}` at another barrier than 0, or with a count of threads")
    name = {"popc": "count", "and": "all", "or": "any"}[operation]
    value = (
        f"simt::block_barrier(simt::Barrier::{name}, {e.value(instruction, predicate, 'pred')}, {e.site(instruction)})"
    )
    return e.assign(instruction, target, kind, value if kind == "u32" else f"{value} != 0")


def _shuffle(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    target, value, lane, bounds, *mask = instruction.operands
    items = target.items if isinstance(target, Vector) else (target, Sink())
    lanes = e.value(instruction, mask[0], "u32") if mask else "simt::kFullMask"
    words = [e.value(instruction, one, "u32") for one in (value, lane, bounds)]
    found = f"shuffled(Shuffle::{choices[-1].lstrip('.')}, {', '.join(words)}, {lanes}, {e.site(instruction)})"
    if len(items) == 1 or isinstance(items[1], Sink):
        return e.assign(instruction, items[0], "b32", f"{found}.value")
    first = e.assign(instruction, items[0], "b32", "moved.value")
    return f"{{ const Moved moved = {found}; {first} {e.assign(instruction, items[1], 'pred', 'moved.is_inside')} }}"


def _elect(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    target, mask = instruction.operands
    items = target.items if isinstance(target, Vector) else (target, Sink())
    value = f"const u32 leader = elected({e.value(instruction, mask, 'u32')}, {e.site(instruction)});"
    first = "" if isinstance(items[0], Sink) else e.assign(instruction, items[0], "b32", "leader")
    return f"{{ {value} {first} {e.assign(instruction, items[1], 'pred', 'leader == simt::current_lane()')} }}"


def _match_all(e: Emitter, instruction: Instruction, choices: tuple[str, ...]) -> str:
    target, value, mask = instruction.operands
    items = target.items if isinstance(target, Vector) else (target, Sink())
    kind = choices[0].lstrip(".")
    values = f"{e.value(instruction, value, kind)}, {e.value(instruction, mask, 'u32')}"
    found = f"const u32 alike = matching({values}, {e.site(instruction)});"
    second = "" if isinstance(items[1], Sink) else e.assign(instruction, items[1], "pred", "alike != 0")
    return f"{{ {found} {e.assign(instruction, items[0], 'b32', 'alike')} {second} }}"


def _active_mask(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    # A coalesced group stays whole under every schedule, as that of audit/simt does.
    is_group = "true" if "cooperative_groups" in instruction.place.headers else "false"
    return e.assign(
        instruction, instruction.operands[0], "b32", f"simt::active_mask({e.site(instruction)}, {is_group})"
    )


def _nothing(_e: Emitter, _instruction: Instruction, _choices: tuple[str, ...]) -> str:
    return ";"


def _arrive(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    target, barrier, *count = instruction.operands
    arrivals = e.value(instruction, count[0], "u32") if count else "1u"
    return e.assign(
        instruction, target, "b64", f"PhaseBarrier::at({e.address(instruction, barrier)}).arrive({arrivals})"
    )


def _arrive_expecting(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    target, barrier, count = instruction.operands
    address = e.address(instruction, barrier)
    expected = f"PhaseBarrier::at({address}).expect({e.value(instruction, count, 'u32')});"
    return f"{expected} {e.assign(instruction, target, 'b64', f'PhaseBarrier::at({address}).arrive(1u)')}"


def _wait_for_phase(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    target, barrier, state, *_ = instruction.operands  # what follows is a limit of time
    value = f"PhaseBarrier::at({e.address(instruction, barrier)}).has_left({e.value(instruction, state, 'b64')})"
    return e.assign(instruction, target, "pred", value)


def _wait_for_parity(e: Emitter, instruction: Instruction, _choices: tuple[str, ...]) -> str:
    target, barrier, parity, *_ = instruction.operands
    value = f"PhaseBarrier::at({e.address(instruction, barrier)}).has_passed({e.value(instruction, parity, 'u32')})"
    return e.assign(instruction, target, "pred", value)


_ARRIVE = "mbarrier.arrive{.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster,}{.shared,.shared::cta,}.b64"
_WAITED = "{.acquire.cta,.acquire.cluster,.relaxed.cta,.relaxed.cluster,}{.shared,.shared::cta,}"
_BARRIERS = "{bar,barrier}{.cta,}"
CONTROL = (
    Rule("bra{.uni,}", emit=_branch),
    Rule("brx.idx{.uni,}", emit=_branch_by_index),
    Rule("ret{.uni,}", emit=_return),
    Rule("exit", emit=_return),
    Rule("call{.uni,}", emit=_call),
    Rule("trap", "=", "simt::trap(SITE)"),
    Rule("brkpt", emit=_nothing),
    Rule("pmevent", emit=_nothing),
    Rule(_BARRIERS + "{.sync,.arrive}", emit=_barrier),
    Rule(_BARRIERS + "{.sync,.arrive}.aligned", emit=_barrier),
    Rule(_BARRIERS + ".red{.popc}{.aligned,}.{u32}", emit=lambda e, i, c: _barrier_reduction(e, i, (c[2], c[4]))),
    Rule(_BARRIERS + ".red{.and,.or}{.aligned,}.{pred}", emit=lambda e, i, c: _barrier_reduction(e, i, (c[2], c[4]))),
    Rule("bar.warp.sync", "= u32", "simt::vote(simt::Vote::synchronise, {0}, 0, SITE)"),
    Rule("membar.{cta,gl,sys}", "=", "fence()"),
    Rule("fence{.sc,.acq_rel,.acquire,.release,}.{cta,cluster,gpu,sys}", "=", "fence()"),
    Rule("fence.proxy.{alias,async,async.global,async.shared::cta,tensormap}", "=", "fence()"),
    Rule("fence.mbarrier_init.release.cluster", "=", "fence()"),
    Rule("shfl{.sync,}{.idx,.up,.down,.bfly}.b32", emit=_shuffle),
    Rule("vote.sync.ballot.b32", "b32 = pred u32", "(u32)simt::vote(simt::Vote::ballot, {1}, {0}, SITE)"),
    Rule("vote.ballot.b32", "b32 = pred", "(u32)simt::vote(simt::Vote::ballot, simt::kFullMask, {0}, SITE)"),
    Rule("vote.sync.{any,all}.pred", "pred = pred u32", "simt::vote(simt::Vote::$1, {1}, {0}, SITE) != 0"),
    Rule("vote.sync.uni.pred", "pred = pred u32", "votes_agree({0}, {1}, SITE)"),
    Rule("match.any.sync.{b32,b64}", "b32 = $1 u32", "(u32)simt::vote(simt::Vote::match, {1}, {0}, SITE)"),
    Rule("match.all.sync.{b32,b64}", emit=_match_all),
    Rule("activemask.b32", emit=_active_mask),
    Rule("elect.sync", emit=_elect),
    Rule("redux.sync.{add,min,max}.{u32,s32}", "$2 = $2 u32", "reduced<Reduction::$1_, $2>({0}, {1}, SITE)"),
    Rule("redux.sync.{and,or,xor}.b32", "b32 = b32 u32", "reduced<Reduction::$1_, u32>({0}, {1}, SITE)"),
    Rule("nanosleep.u32", "= u32", "pause({0})"),
    Rule("griddepcontrol.{wait,launch_dependents}", emit=_nothing),
    Rule("setmaxnreg.{inc,dec}.sync.aligned.u32", emit=_nothing),
    Rule("mbarrier.init{.shared,.shared::cta,}.b64", "= address u32", "PhaseBarrier::at({0}).start({1})"),
    Rule("mbarrier.inval{.shared,.shared::cta,}.b64", "= address", "(void)({0})"),
    Rule(_ARRIVE, emit=_arrive),
    Rule(_ARRIVE.replace("arrive", "arrive.expect_tx"), emit=_arrive_expecting),
    Rule(
        "mbarrier.expect_tx{.relaxed.cta,}{.shared,.shared::cta,}.b64",
        "= address u32",
        "PhaseBarrier::at({0}).expect({1})",
    ),
    Rule(f"mbarrier.{{test_wait,try_wait}}{_WAITED}.b64", emit=_wait_for_phase),
    Rule(f"mbarrier.{{test_wait,try_wait}}.parity{_WAITED}.b64", emit=_wait_for_parity),
    Rule("cp.async.mbarrier.arrive{.noinc,}{.shared,.shared::cta,}.b64", "= address", "copies.arrive_at({0}, is_$1)"),
)
