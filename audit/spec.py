"""What a kernel promises, as data: the vocabulary of a project's declaration.

An `Operator` states what is computed: its axes, buffers, inputs, references and bounds. A `Variant` is one
implementation of it, with its parent. A `Shape` is a named choice of axis values. A `Case` is one point of
the axes with a seed or a capture. Nothing here executes anything, and nothing knows any particular kernel.
`docs/your-kernel.md` explains the declaration by examples; `docs/reference.md` is made from these docstrings.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import ml_dtypes
import msgspec
import numpy as np

from audit.errors import PlanError, ProjectError
from audit.relations import Bitwise, Relation

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""A numpy array of any dtype."""
Inputs: TypeAlias = Mapping[str, Array | np.generic]
"""Inputs by name: an array fills the `in`, `inout` or `constant` buffer of that name, a numpy scalar is a launch
argument."""
AxisValue: TypeAlias = int | float | str
"""A value of an axis; the size of a dimension must be an integer."""
Role = Literal["in", "out", "inout", "workspace", "scratch", "constant"]
"""What a buffer is to a kernel: read, written, both, for intermediate results, of no promised content, or what a
`__constant__` variable holds."""
Status = Literal["control", "admitted", "experimental", "closed"]
"""The standing of a variant: `control` is the original, `admitted` has passed and has records that show it,
`experimental` is under work, `closed` was rejected and runs only when a command names it."""

DTYPES: Mapping[str, np.dtype[Any]] = {
    "f64": np.dtype("<f8"),
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
    "bool": np.dtype("?"),
    "i4": np.dtype(ml_dtypes.int4),
    "u4": np.dtype(ml_dtypes.uint4),
    "i8": np.dtype("i1"),
    "u8": np.dtype("u1"),
    "i16": np.dtype("<i2"),
    "u16": np.dtype("<u2"),
    "i32": np.dtype("<i4"),
    "u32": np.dtype("<u4"),
    "i64": np.dtype("<i8"),
    "u64": np.dtype("<u8"),
}
"""The numpy dtype of an element of each dtype of buffers."""
PACKED: frozenset[str] = frozenset({"e2m1", "i4", "u4"})
"""The dtypes of four bits: a buffer holds two neighbours of the last dimension in a byte, the first in its low half.
A numpy array of them is not packed: each element takes a byte."""


_kernels_on_gpu: ContextVar[bool] = ContextVar("kernels run on a GPU", default=False)


@contextmanager
def kernels_on_gpu(there: bool) -> Iterator[None]:
    """Let the references that are called in this block know whether the kernels run on a GPU."""
    token = _kernels_on_gpu.set(there)
    try:
        yield
    finally:
        _kernels_on_gpu.reset(token)


class Axis(msgspec.Struct, frozen=True):
    """One dimension along which cases differ, with the values that the operator promises to handle.

    name         how `case.NAME`, `--axis NAME=VALUE` and the dimensions of buffers refer to it
    default      the value of a case that sets no other
    values       the only permitted values; empty permits any
    at_least     the least permitted integer
    at_most      the greatest permitted integer
    multiple_of  every value must be a multiple of this
    quiet        leave the axis out of the case's name while it has its default
    """

    name: str
    default: AxisValue
    values: tuple[AxisValue, ...] = ()
    at_least: int | None = None
    at_most: int | None = None
    multiple_of: int | None = None
    quiet: bool = False

    def admit(self, value: AxisValue) -> None:
        """Raise PlanError unless the operator promises to handle the value."""
        if self.values and value not in self.values:
            raise PlanError(f"axis {self.name}: expected one of {list(self.values)}, but got {value!r}")
        if self.at_least is None and self.at_most is None and self.multiple_of is None:
            return
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        if not isinstance(value, int) or value < low:
            raise PlanError(f"axis {self.name}: expected an integer of at least {low:,}, but got {value!r}")
        if value > high:
            raise PlanError(f"axis {self.name}: expected an integer of at most {high:,}, but got {value!r}")
        if self.multiple_of is not None and value % self.multiple_of != 0:
            raise PlanError(f"axis {self.name}: expected a multiple of {self.multiple_of}, but got {value!r}")


class Shape(msgspec.Struct, frozen=True):
    """A named choice of axis values, such as q6 for rows=6. The option `--shape` takes its name.

    name   unique in the project
    fixed  axis -> value; a command cannot give the axis another value
    """

    name: str
    fixed: dict[str, AxisValue] = {}


class Case(msgspec.Struct, frozen=True):
    """One audit case: a shape at given axis values, with inputs from a seed, a capture or a probe.

    The tool makes cases; a declaration reads them. An axis value reads as an attribute: `case.rows`.

    shape            name of the shape
    operator         name of the operator
    axes             axis -> value, of every axis
    seed             seed of generated inputs
    capture          id of the capture that gives the inputs
    probe            name of the probe that gives the inputs
    first_step_only  run the first step and leave out the others
    unnamed          axes that the name of the case leaves out
    arch             architecture whose tensor cores the results follow
    families         input families that run as further steps
    """

    shape: str
    operator: str
    axes: dict[str, AxisValue]
    seed: int = 0
    capture: str | None = None
    probe: str | None = None
    first_step_only: bool = False
    unnamed: tuple[str, ...] = ()
    arch: str = "sm_90"
    families: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        """The value of an axis: `case.rows`."""
        try:
            return self.axes[name]
        except KeyError:
            raise AttributeError(
                f"case {self.id}: expected one of the axes {sorted(self.axes)}, but got {name!r}"
            ) from None

    @property
    def id(self) -> str:
        """The name of the case: shape, origin of the inputs, axis values. It is the same in every run."""
        values = ",".join(f"{name}={value}" for name, value in self.axes.items() if name not in self.unnamed)
        origin = self.capture or (f"probe-{self.probe}" if self.probe else f"seed{self.seed}")
        return f"{self.shape}/{origin}/{values}"

    @property
    def gpu(self) -> bool:
        """Whether the kernels of the case under audit run on a GPU, which references may then use."""
        return _kernels_on_gpu.get()

    def rng(self) -> np.random.Generator:
        """A generator seeded by the id of the case, so that no case depends on another."""
        digest = hashlib.sha256(self.id.encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:16], "little"))


class Buffer(msgspec.Struct, frozen=True):
    """One array in device memory, C-contiguous, between guards.

    name    how launches, inputs and results refer to it
    dtype   f64, f32, f16, bf16, e4m3 (e4m3fn), e5m2, e2m1, bool, i4, u4, i8, u8, i16, u16, i32, u32, i64 or u64. An
            array of bf16, e4m3, e5m2, e2m1, i4 or u4 has the dtype of `ml_dtypes`. e2m1, i4 and u4 are packed: two
            neighbours of the last dimension share a byte, the first in its low half
    dims    the dimensions, outermost first: each word is an axis of the case, or `name=size`; sizes count elements
    role    `in`, `out`, `workspace` (its bytes are compared like an output's), `scratch` (nothing is promised of its
            bytes), `inout`: filled from `inputs` before every step, and a result after it, or `constant`: filled from
            `inputs` and copied before every step into the `__constant__` or `__device__` variable of that name, which
            may include its namespace; a launch does not pass it
    offset  bytes by which the first element is shifted from an address aligned to 256 bytes
    behind  bytes that follow the data, where guard bytes would be: a trap for a kernel that reads too far
    """

    name: str
    dtype: str
    dims: str
    role: Role
    offset: int = 0
    behind: bytes = b""

    def extents(self, case: Case) -> tuple[tuple[str, int], ...]:
        """(name, size) of each dimension. Raises ProjectError for a size that is neither given nor an axis."""
        extents = []
        for word in self.dims.split():
            name, _, size = word.partition("=")
            value = size or case.axes.get(name)
            try:
                extents.append((name, int(value)))  # type: ignore[arg-type]
            except (TypeError, ValueError):
                raise ProjectError(
                    f"buffer {self.name}: dimension {word!r} must be an integer axis of the case "
                    f"({', '.join(case.axes)}) or be written name=size"
                ) from None
        return tuple(extents)

    def dims_of(self, case: Case) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(name for name, _ in self.extents(case))

    def shape(self, case: Case) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(size for _, size in self.extents(case))

    def numpy_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of an element. Raises ProjectError for an unknown dtype."""
        if self.dtype not in DTYPES:
            raise ProjectError(f"buffer {self.name}: expected a dtype of {list(DTYPES)}, but got {self.dtype!r}")
        return DTYPES[self.dtype]

    @property
    def packed(self) -> bool:
        """Whether two elements share a byte."""
        return self.dtype in PACKED

    def nbytes(self, case: Case) -> int:
        """The size of the data in bytes, guards excluded."""
        if self.packed and (not (extents := self.extents(case)) or extents[-1][1] % 2):
            last = f"{extents[-1][0]}={extents[-1][1]}" if extents else "none"
            raise ProjectError(
                f"buffer {self.name}: dimension {last}: expected an even size, since two of {self.dtype} share a byte"
            )
        return self.bytes_of(math.prod(self.shape(case)))

    def element_at(self, byte: int) -> int:
        """The index of the first element, in order, that has bits in a byte of the data."""
        return 2 * byte if self.packed else byte // self.numpy_dtype().itemsize

    def bytes_of(self, elements: int) -> int:
        """The bytes that a number of elements takes. Raises ProjectError for half a byte."""
        if self.packed and elements % 2:
            raise ProjectError(
                f"buffer {self.name}: expected an even number of elements, since two of {self.dtype} share a byte, "
                f"but got {elements}"
            )
        return elements // 2 if self.packed else elements * self.numpy_dtype().itemsize


@dataclass(frozen=True)
class At:
    """A launch argument: an address inside a buffer.

    buffer    name of the buffer
    elements  how far past the buffer's first element the address lies, in elements
    """

    buffer: str
    elements: int


@dataclass(frozen=True, init=False)
class Pointers:
    """A launch argument: an array of pointers in device memory, as for a parameter `float** rows`.

    targets  what each pointer points to: the name of a buffer, an `At`, or None for a null pointer
    """

    targets: tuple[str | At | None, ...]

    def __init__(self, *targets: str | At | None) -> None:
        object.__setattr__(self, "targets", targets)


@dataclass(frozen=True, init=False)
class Struct:
    """A launch argument: a struct by value with pointers in it.

    dtype   a structured numpy dtype with the layout of C, `numpy.dtype([...], align=True)`; pointers are fields of
            uint64
    fields  field -> number, or what a pointer points to: the name of a buffer, an `At`, or None for a null pointer
    """

    dtype: np.dtype[Any]
    fields: Mapping[str, Any]

    def __init__(self, dtype: np.dtype[Any], /, **fields: Any) -> None:
        object.__setattr__(self, "dtype", np.dtype(dtype))
        object.__setattr__(self, "fields", fields)


Arg: TypeAlias = str | bool | int | float | np.generic | At | Pointers | Struct | None
"""A launch argument: the name of a buffer or of a scalar input, a Python int (i32), float (f32) or bool, a numpy scalar
of a bool, of an integer or of a floating-point number, a scalar of `ml_dtypes`, a structured numpy scalar with the
layout of C for a struct by value, an `At`, a `Pointers`, a `Struct`, or None for a null pointer."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    entry         the kernel, as a C++ expression: `softmax` or `splits<6, 256>`
    grid          one to three extents, in blocks
    block         one to three extents, in threads
    shared_bytes  dynamic shared memory of a block, in bytes; a GPU grants more than 48 KiB without further request
    args          the arguments, in the order of the kernel's parameters
    cooperative   all blocks run at the same time and can wait for each other; for a GPU only
    cluster       one to three extents of a cluster, in blocks, for a GPU only; None leaves it to the kernel
    """

    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int = 0
    args: tuple[Arg, ...] = ()
    cooperative: bool = False
    cluster: tuple[int, ...] | None = None


class Source(msgspec.Struct, frozen=True):
    """A CUDA C++ file, and how it is compiled.

    path     relative to the project's folder
    defines  macro -> value
    flags    further words for nvcc, such as `-fmad=false` or `--use_fast_math`. Without any, nvcc's defaults hold. The
             CPU takes from them `-std`, `-I` and `-fmad`: where nvcc may fuse a multiplication and an addition, which
             is its default, the CPU's compiler may too. Nothing else of `--use_fast_math` is modelled on a CPU
    include  folders of headers, relative to the project's folder
    std      the C++ standard, such as `c++20`; the default is c++17. The CPU takes no older one than c++17
    also     further CUDA C++ files, which are compiled behind the first as one unit, in this order
    """

    path: str
    defines: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    std: str = ""
    also: tuple[str, ...] = ()


class Machine(msgspec.Struct, frozen=True):
    """Compiled GPU code: a cubin, a fatbin or PTX. It runs on a GPU only.

    path   relative to the project's folder
    entry  the kernel's name in the file where it is not the one that launches use: mangled, demangled or with template
           arguments. A mapping from names in launches to names in the file where there are several
    """

    path: str
    entry: str | dict[str, str] = ""


class Binary(msgspec.Struct, frozen=True):
    """A program that `audit freeze` kept. It runs on the CPU only.

    path  the folder that `audit freeze` wrote, relative to the project's folder
    """

    path: str


@dataclass(frozen=True)
class Variant:
    """One implementation of an operator. A variant with a parent must leave what its relation to the parent permits:
    every byte that the parent writes, unless it declares another one.

    name      unique in the operator
    code      the source file, the compiled GPU code or the frozen program
    launches  the kernel launches of a case, in order
    parent    name of the variant that it is compared with; None leaves it to the bounds alone
    status    control, admitted, experimental or closed
    note      what it changes, in a sentence for the report
    why       why it was closed
    evidence  records that admit or close it: paths relative to the project's folder
    relation  what its results have in common with the parent's. A mapping gives relations by the names of outputs and
              workspaces; those that it leaves out stay `Bitwise()`
    """

    name: str
    code: Source | Machine | Binary
    launches: Callable[[Case], Sequence[Launch]]
    parent: str | None = None
    status: Status = "experimental"
    note: str = ""
    why: str = ""
    evidence: tuple[str, ...] = ()
    relation: Relation | Mapping[str, Relation] = Bitwise()  # noqa: RUF009 - frozen


@dataclass(frozen=True)
class Reference:
    """What the result should be, computed before any variant runs.

    name         how bounds refer to it
    compute      named arrays from a case and its inputs, as f64 unless the reference is exact in another type
    own_error    the reference's own error, in words; the plan records it
    computed_by  the library or device that computes it, where the case decides between several; the record keeps it
    """

    name: str
    compute: Callable[[Case, Inputs], Mapping[str, Array]]
    own_error: str = ""
    computed_by: Callable[[Case], str] | None = None


Got: TypeAlias = Mapping[str, Array]
"""What a variant left: outputs, workspaces and derived values, by name."""
Expected: TypeAlias = Mapping[str, Array]
"""The arrays of one reference, by name."""


@dataclass(frozen=True)
class Measured:
    """Errors beside their limits. It passes where value <= limit everywhere, so a NaN fails.

    value  the errors, in the unit of the limit
    limit  the limits, of the same shape as the errors
    dims   a name for each dimension, which says where the worst error is
    """

    value: Array
    limit: Array
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Bound:
    """A limit of the error, checked in every step as `error:NAME`.

    name       the name in results
    measure    errors and limits from a case, its inputs, the variant's results and the reference's arrays; None where
               the bound does not apply
    reference  name of the reference that is passed as the last argument; empty passes no arrays
    output     output or workspace whose first dimensions name those of the errors, where the measure names none
    """

    name: str
    measure: Callable[[Case, Inputs, Got, Expected], Measured | None]
    reference: str = "fp64"
    output: str = ""


@dataclass(frozen=True)
class Probe:
    """Structured inputs with a result in closed form, checked in the first step as `probe:NAME`.

    name    how plan lines and `--probe` refer to it
    inputs  the inputs, in place of the operator's own
    expect  errors and limits of the variant's results against the closed form
    """

    name: str
    inputs: Callable[[Case, np.random.Generator], Inputs]
    expect: Callable[[Case, Inputs, Mapping[str, Array]], Measured]


@dataclass(frozen=True)
class Mutation:
    """A wrong result that the checks must reject. A plan in which every check accepts it is inconclusive.

    name   the name in the record
    apply  what a faulty kernel would leave, from a case, its inputs, the right results and reference -> arrays: the
           outputs and workspaces that change, or None where the fault cannot show
    """

    name: str
    apply: Callable[[Case, Inputs, Mapping[str, Array], Mapping[str, Mapping[str, Array]]], Mapping[str, Array] | None]


@dataclass(frozen=True)
class Line:
    """One line of a default plan: a case.

    axes             axis -> value; an axis that it leaves out keeps the shape's value or its default
    probe            name of the probe that gives the inputs
    capture          id of the capture that gives the inputs; for `Operator.sanitize` only
    first_step_only  run the first step and leave out the others
    full             run only with `--full`
    families         input families that run as further steps
    """

    axes: Mapping[str, AxisValue] = field(default_factory=dict)
    probe: str | None = None
    capture: str | None = None
    first_step_only: bool = False
    full: bool = False
    families: Sequence[str] = ()


@dataclass(frozen=True)
class Families:
    """A plan made of input families, which run as further steps of each case, and of sizes, which are further cases.

    The families are `seed2`, `seed3` and so on (another draw of `inputs`), `negative`, `ties`, `zeros`, `huge`,
    `close`, `alternating`, `wide`, `ones` and `denormal`; `ramp` and `masked` run only by name. `docs/inputs.md`
    explains each.

    names    the families, in order; empty takes all that need no name
    without  families to leave out
    seeds    the number of draws of `inputs`, the case's own included: 3 adds `seed2` and `seed3`
    buffers  integer buffers that families change as well
    sizes    True adds cases for each axis that declares values or a range, False none; a mapping from an axis to
             values adds these
    """

    names: Sequence[str] = ()
    without: Sequence[str] = ()
    seeds: int = 3
    buffers: Sequence[str] = ()
    sizes: bool | Mapping[str, Sequence[AxisValue]] = True


class PeerRun(Protocol):
    """A peer that holds the inputs of all layers on the device."""

    def replay(self) -> None:
        """Enqueue the work of all layers once on torch's current CUDA stream, and return without waiting."""

    def out(self, layer: int) -> Array:
        """The output of a layer after the last replay, shaped like `Bench.output`."""


@dataclass(frozen=True)
class Peer:
    """Another implementation of the operator, from an installed package, timed beside the project's variants.

    name     the name in results
    package  the distribution that provides it; the record keeps its version
    prepare  a run over all layers, from a case and the inputs of each layer; raises ToolMissing where the package is
             not installed
    moves    bytes that it must move for one layer of a case
    """

    name: str
    package: str
    prepare: Callable[[Case, Sequence[Inputs]], PeerRun]
    moves: Callable[[Case], int]


@dataclass(frozen=True)
class Bench:
    """What `audit bench` times: a working set of several layers, each with inputs of its own, along one axis.

    axis    name of the axis
    values  its values to time at, ascending
    axes    axis -> value of the other axes, where it is not the shape's or the default
    at      the inputs that change where the axis has a lesser value, from a case, its inputs and the value: one working
            set, made for the greatest value, then serves all. Without it, each value has a working set of its own
    moved   bytes that any implementation must move for one layer, from a case and the value; by default those of all
            inputs and all outputs
    output  name of the output whose error is measured; by default the first
    layers  number of layers
    peers   other implementations to time
    """

    axis: str
    values: Sequence[int]
    axes: Mapping[str, AxisValue] = field(default_factory=dict)
    at: Callable[[Case, Inputs, int], Inputs] | None = None
    moved: Callable[[Case, int], int] | None = None
    output: str = ""
    layers: int = 16
    peers: Sequence[Peer] = ()


class CapturedInputs(Protocol):
    """A verified capture, as `Operator.from_capture` gets it."""

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The captured arrays: q f16 [rows, heads, dim]; k and v e4m3 [pages, page, 1, dim]."""

    @property
    def scales(self) -> Mapping[str, float]:
        """The captured scalars: scale, k_scale and v_scale."""


def live_and_restore(_case: Case, _inputs: Inputs) -> Mapping[str, Inputs]:
    """The default steps: run, then run again on freshly poisoned buffers, with the same bytes."""
    return {"live": {}, "restore": {}}


def written_everywhere(_case: Case, _inputs: Inputs) -> Mapping[str, Array]:
    """The default written region: every element of every output and workspace."""
    return {}


def finite_everywhere(_case: Case, _inputs: Inputs) -> Mapping[str, Array]:
    """The default of `nonfinite`: no result may hold infinity or NaN."""
    return {}


@dataclass(frozen=True)
class Operator:
    """What is computed, with its buffers and its promises.

    name            unique in the project
    axes            the dimensions along which cases differ
    buffers         every buffer of a case, in any order
    inputs          arrays for the `in` and `inout` buffers and numpy scalars for launch arguments, from a case and a
                    generator
    variants        the implementations
    references      what the result should be
    bounds          limits of the error against the references
    shapes          named choices of axis values; without any, one shape has the operator's name
    plan            shape name -> lines of its default plan; the key "" serves all other shapes. `Families` makes a plan
                    for every shape. A shape without lines gets a plan with the families that fit into a few seconds
    captures        shape name -> ids of the captures in its default plan; the key "" serves all other shapes
    capture_axes    axis -> value that a capture fixes
    from_capture    the inputs of a case, from a capture; needed for cases with a capture
    admit_inputs    raises InputError for inputs outside the domain of the operator
    steps           step -> inputs that change, from a case and its inputs; `restore` must reproduce `live`
    written         buffer -> bool mask, broadcast to the buffer, of the elements that must be written; all other
                    elements must keep their poison, or what an `inout` buffer held before. A buffer without a mask
                    must be written everywhere
    nonfinite       buffer -> bool mask, broadcast to the buffer, of the elements in which infinity or NaN is meant,
                    such as the -inf of a mask; everywhere else the check `finite` refuses both
    same_on_host    promise that the CPU backend leaves the bytes of the GPU. Without it, a run on a GPU measures and
                    shows the difference, and does not judge it
    derived         name -> function of a case, its inputs and the results, for a value computed from the workspace
    measured        output or derived name -> array of a reference; the report shows the error between the two
    describe        what a reader of the plan should know of a case, such as its row lengths
    probes          structured inputs with a result in closed form
    mutations       wrong results, beside zeros and noise, that the checks must reject
    omission_share  the share of single omissions, such as of one token, that the bounds of a case could show
    sanitize        shape name -> lines of the cases that sanitizers run; the key "" serves all other shapes
    default         name of the variant that callers should use: a control or an admitted one
    bench           what `audit bench` times, where it is not the default case or what its options say
    """

    name: str
    axes: Sequence[Axis]
    buffers: Callable[[Case], Sequence[Buffer]]
    inputs: Callable[[Case, np.random.Generator], Inputs]
    variants: Sequence[Variant]
    references: Sequence[Reference] = ()
    bounds: Sequence[Bound] = ()
    shapes: Sequence[Shape] = ()
    plan: Mapping[str, Sequence[Line]] | Families = field(default_factory=dict)
    captures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    capture_axes: Callable[[CapturedInputs], Mapping[str, AxisValue]] | None = None
    from_capture: Callable[[Case, CapturedInputs], Inputs] | None = None
    admit_inputs: Callable[[Case, Inputs], None] | None = None
    steps: Callable[[Case, Inputs], Mapping[str, Inputs]] = live_and_restore
    written: Callable[[Case, Inputs], Mapping[str, Array]] = written_everywhere
    nonfinite: Callable[[Case, Inputs], Mapping[str, Array]] = finite_everywhere
    same_on_host: bool = False
    derived: Mapping[str, Callable[[Case, Inputs, Mapping[str, Array]], Array]] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)
    describe: Callable[[Case], str] = lambda _case: ""
    probes: Sequence[Probe] = ()
    mutations: Sequence[Mutation] = ()
    omission_share: Callable[[Case, Inputs, Mapping[str, Mapping[str, Array]]], float] | None = None
    sanitize: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    default: str | None = None
    bench: Bench | None = None

    def variant(self, name: str) -> Variant:
        """The variant of that name. Raises PlanError for an unknown name."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise PlanError(
            f"operator {self.name}: expected a variant of {[v.name for v in self.variants]}, but got {name!r}"
        )

    def probe(self, name: str) -> Probe:
        """The probe of that name. Raises PlanError for an unknown name."""
        for probe in self.probes:
            if probe.name == name:
                return probe
        raise PlanError(f"operator {self.name}: expected a probe of {[p.name for p in self.probes]}, but got {name!r}")

    def case(
        self,
        shape: Shape,
        axes: Mapping[str, AxisValue],
        *,
        seed: int = 0,
        capture: str | None = None,
        probe: str | None = None,
        first_step_only: bool = False,
    ) -> Case:
        """A case with a value for every axis: the given one, else the shape's, else the default.

        Raises PlanError for an unknown axis or probe, a value that the axis does not permit, or one that contradicts
        the shape.
        """
        known = {axis.name for axis in self.axes}
        for name in (*shape.fixed, *axes):
            if name not in known:
                raise PlanError(f"operator {self.name}: expected an axis of {sorted(known)}, but got {name!r}")
            if name in axes and axes[name] != shape.fixed.get(name, axes[name]):
                raise PlanError(f"shape {shape.name} means {name}={shape.fixed[name]}, but got {name}={axes[name]}")
        values = {axis.name: axes.get(axis.name, shape.fixed.get(axis.name, axis.default)) for axis in self.axes}
        for axis in self.axes:
            axis.admit(values[axis.name])
        if probe is not None:
            self.probe(probe)
        unnamed = tuple(axis.name for axis in self.axes if axis.quiet and values[axis.name] == axis.default)
        return Case(shape.name, self.name, values, seed, capture, probe, first_step_only, unnamed)
