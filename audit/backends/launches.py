"""A bundle's launches on the device: one by one, or as a graph captured once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from math import prod
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from audit.arguments import Argument
from audit.backends.driver import INVALID_VALUE, CudaError, Driver, KernelNode, LaunchAttribute, LaunchConfig
from audit.bundle import BundledLaunch

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LARGE_CLUSTERS = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_PORTABLE_CLUSTER = 8  # blocks; more need the attribute
_COOPERATIVE, _CLUSTER = 2, 4  # CUlaunchAttributeID
_NON_BLOCKING, _THREAD_LOCAL, _KERNEL_NODE = 1, 1, 0


class Buffers(Protocol):
    """The buffers on the device, by name: address and size in bytes."""

    def address(self, name: str) -> int: ...

    def size(self, name: str) -> int: ...


class LaunchError(Exception):
    """A launch does not fit its kernel or the device."""


class ArgumentError(LaunchError):
    """The arguments of a launch are not those of its kernel: the declaration is wrong, not the kernel."""


class Kernel(NamedTuple):
    """A function of the cubin loaded as `module`, with the sizes of its parameters in bytes."""

    entry: str
    symbol: str
    module: c_void_p
    function: c_void_p
    parameters: tuple[int, ...]


class LaunchEvent(NamedTuple):
    """A launch that ran: the blocks of its grid and the threads of a block."""

    entry: str
    blocks: int
    threads: int


class PackedLaunch(NamedTuple):
    """A launch with its arguments in memory for the driver: `pointers` points into `values`."""

    launch: BundledLaunch
    kernel: Kernel
    values: Sequence[ctypes.Array[ctypes.c_char]]
    pointers: ctypes.Array[c_void_p]


class Launches:
    """The launches of one step, in order, on the given stream or on a stream of their own."""

    def __init__(
        self, driver: Driver, kernels: Mapping[str, Kernel], buffers: Buffers, stream: c_void_p | None = None
    ) -> None:
        self._driver, self._kernels, self._buffers = driver, kernels, buffers
        self._prepared: list[PackedLaunch] = []
        self._graph: c_void_p | None = None
        self._nodes: tuple[LaunchEvent, ...] = ()
        self._stream = stream or c_void_p()
        if stream is None:
            driver.call("cuStreamCreate", byref(self._stream), _NON_BLOCKING)

    def prepare(self, launches: Sequence[BundledLaunch]) -> None:
        """Resolve the arguments. Raises LaunchError if a launch does not fit its kernel or the device."""
        self._prepared = [self._prepare(launch, self._kernels[launch.entry]) for launch in launches]
        for kernel in self._kernels.values():
            if any(prod(each.cluster or ()) > _PORTABLE_CLUSTER for each in launches if each.entry == kernel.entry):
                self._driver.call("cuFuncSetAttribute", kernel.function, _LARGE_CLUSTERS, 1)
            wanted = max(launch.shared_bytes for launch in launches if launch.entry == kernel.entry)
            if wanted == 0:
                continue
            try:
                self._driver.call("cuFuncSetAttribute", kernel.function, _MAX_DYNAMIC_SHARED, wanted)
            except CudaError as error:
                raise LaunchError(
                    f"kernel {kernel.entry}: the launch requests {wanted} bytes of dynamic shared memory, more than "
                    f"the device grants ({error})"
                ) from None

    def capture(self) -> None:
        """Capture all launches in a graph for `replay`. Raises LaunchError if the graph holds anything else."""
        self._driver.call("cuStreamBeginCapture_v2", self._stream, _THREAD_LOCAL)
        self.enqueue()
        graph, executable = c_void_p(), c_void_p()
        self._driver.call("cuStreamEndCapture", self._stream, byref(graph))
        nodes = self._chain(graph)
        self._nodes = tuple(map(self._launch_of, nodes))
        for node, prepared in zip(nodes, self._prepared, strict=False):
            self._require_attributes(node, prepared.launch)
        self._driver.call("cuGraphInstantiateWithFlags", byref(executable), graph, 0)
        self._driver.call("cuGraphDestroy", graph)
        self._graph = executable

    def enqueue(self) -> None:
        """Launch them all in order, without waiting."""
        for prepared in self._prepared:
            self._launch(prepared)

    def run(self, on_end: Callable[[LaunchEvent], None]) -> None:
        """Execute; `on_end` receives each launch when it has completed. Raises CudaError if one fails."""
        self._driver.call("cuCtxSynchronize")  # copies from pageable memory may still be in flight
        for prepared in self._prepared:
            self._launch(prepared)
            self._driver.call("cuStreamSynchronize", self._stream)
            launch = prepared.launch
            on_end(LaunchEvent(launch.entry, prod(launch.grid), prod(launch.block)))

    def replay(self, on_end: Callable[[LaunchEvent], None]) -> None:
        """Execute the captured graph; otherwise as `run`."""
        self._driver.call("cuCtxSynchronize")
        self._driver.call("cuGraphLaunch", self._graph, self._stream)
        self._driver.call("cuStreamSynchronize", self._stream)
        for node in self._nodes:
            on_end(node)

    def free(self) -> None:
        """Destroy the graph and the stream. Do not call this with a stream that the caller gave."""
        if self._graph is not None:
            self._driver.call("cuGraphExecDestroy", self._graph)
        self._driver.call("cuStreamDestroy_v2", self._stream)

    def _launch(self, prepared: PackedLaunch) -> None:
        launch, function = prepared.launch, prepared.kernel.function
        attributes = _attributes(launch)
        if not attributes:
            extents = (*launch.grid, *launch.block, launch.shared_bytes)
            self._driver.call("cuLaunchKernel", function, *extents, self._stream, prepared.pointers, None)
            return
        config = LaunchConfig(
            (c_uint * 3)(*launch.grid), (c_uint * 3)(*launch.block), launch.shared_bytes, self._stream
        )
        config.attributes, config.attribute_count = attributes, len(attributes)
        self._driver.call("cuLaunchKernelEx", byref(config), function, prepared.pointers, None)

    def _prepare(self, launch: BundledLaunch, kernel: Kernel) -> PackedLaunch:
        if len(launch.args) != len(kernel.parameters):
            raise ArgumentError(
                f"kernel {kernel.entry}: expected {len(kernel.parameters)} arguments, but the launch has "
                f"{len(launch.args)}"
            )
        values = []
        for position, (argument, size) in enumerate(zip(launch.args, kernel.parameters, strict=True), 1):
            value = self._value(argument, f"kernel {kernel.entry}, argument {position}")
            if len(value) != size and not _narrows(argument, size):
                raise ArgumentError(
                    f"kernel {kernel.entry}, argument {position}: expected {size} bytes, but got {_shown(argument)} of "
                    f"{len(value)} bytes"
                )
            values.append(ctypes.create_string_buffer(value, max(8, len(value))))
        addresses = [ctypes.addressof(value) for value in values]
        return PackedLaunch(launch, kernel, values, (c_void_p * len(values))(*addresses))

    def _value(self, argument: Argument, where: str) -> bytes:
        if argument.kind not in ("pointer", "pointers"):
            value = bytearray.fromhex(argument.bits)
            for at, pointer in argument.pointers:
                value[at : at + 8] = self._value(pointer, where)
            return bytes(value)
        if not argument.buffer:
            return bytes(8)
        if argument.offset > self._buffers.size(argument.buffer):
            raise LaunchError(
                f"{where}: {_shown(argument)} is past the {self._buffers.size(argument.buffer)} bytes of its buffer"
            )
        return bytes(c_uint64(self._buffers.address(argument.buffer) + argument.offset))

    def _chain(self, graph: c_void_p) -> list[int]:
        """The graph's nodes, first to last. Raises LaunchError unless each node depends on exactly the one before."""
        count, edges = c_size_t(), c_size_t()
        self._driver.call("cuGraphGetNodes", graph, None, byref(count))
        self._driver.call("cuGraphGetEdges", graph, None, None, byref(edges))
        nodes, heads, tails = (c_void_p * count.value)(), (c_void_p * edges.value)(), (c_void_p * edges.value)()
        self._driver.call("cuGraphGetNodes", graph, nodes, byref(count))
        if edges.value:
            self._driver.call("cuGraphGetEdges", graph, heads, tails, byref(edges))
        after = {head: tail for head, tail in zip(heads, tails, strict=True) if head and tail}
        chain = [node for node in nodes if node and node not in set(tails)][:1]
        while chain and chain[-1] in after and len(chain) < len(nodes):
            chain.append(after[chain[-1]])
        if len(chain) != len(nodes) or edges.value != max(0, len(nodes) - 1):
            raise LaunchError(
                f"expected the captured graph to be a chain of launches, but got {len(nodes)} nodes, "
                f"{edges.value} edges"
            )
        return chain

    def _launch_of(self, node: int) -> LaunchEvent:
        kind, kernel_node = c_int(), KernelNode()
        self._driver.call("cuGraphNodeGetType", node, byref(kind))
        if kind.value != _KERNEL_NODE:
            raise LaunchError(f"expected only kernels in the captured graph, but got a node of type {kind.value}")
        self._driver.call("cuGraphKernelNodeGetParams_v2", node, byref(kernel_node))
        function, module, symbol = c_void_p(kernel_node.function), c_void_p(), c_char_p()
        if not kernel_node.function:
            self._driver.call("cuKernelGetFunction", byref(function), kernel_node.kernel)
        self._driver.call("cuFuncGetName", byref(symbol), function)
        self._driver.call("cuFuncGetModule", byref(module), function)
        name = (symbol.value or b"").decode(errors="replace")
        kernel = next((kernel for kernel in self._kernels.values() if kernel.symbol == name), None)
        if kernel is None:
            raise LaunchError(f"expected the captured graph to launch kernels of the bundle, but it launches {name!r}")
        if module.value != kernel.module.value:
            raise LaunchError(f"expected {name!r} in the captured graph to be of the loaded cubin, but it is not")
        return LaunchEvent(kernel.entry, prod(kernel_node.grid), prod(kernel_node.block))

    def _require_attributes(self, node: int, launch: BundledLaunch) -> None:
        for wanted in _attributes(launch):
            value = (c_uint * 16)()
            self._driver.call("cuGraphKernelNodeGetAttribute", node, wanted.id, value)
            if list(value)[:3] != list(wanted.value)[:3]:
                what = "a cooperative launch" if wanted.id == _COOPERATIVE else f"clusters of {launch.cluster}"
                raise LaunchError(f"expected {what} of {launch.entry} in the captured graph, but its node has none")


def _attributes(launch: BundledLaunch) -> ctypes.Array[LaunchAttribute]:
    """What a launch asks for beside its extents."""
    wanted: list[tuple[int, tuple[int, ...]]] = [(_COOPERATIVE, (1,))] if launch.cooperative else []
    if launch.cluster:
        wanted.append((_CLUSTER, launch.cluster))
    attributes = [LaunchAttribute(kind, 0, (c_uint * 16)(*value)) for kind, value in wanted]
    return (LaunchAttribute * len(attributes))(*attributes)


def table_of(pointers: Sequence[Argument], buffers: Buffers) -> NDArray[np.uint64]:
    """The addresses of an array of pointers. Raises ArgumentError for one past its buffer."""
    for pointer in pointers:
        if pointer.buffer and pointer.offset > buffers.size(pointer.buffer):
            raise ArgumentError(f"{pointer.target} is past the {buffers.size(pointer.buffer)} bytes of its buffer")
    return np.array(
        [buffers.address(pointer.buffer) + pointer.offset if pointer.buffer else 0 for pointer in pointers], np.uint64
    )


def load_kernels(driver: Driver, cubin: bytes, symbols: Mapping[str, str]) -> dict[str, Kernel]:
    """A cubin's kernels by entry; `symbols` maps entries to names in it. Raises CudaError if it does not load."""
    module = c_void_p()
    driver.call("cuModuleLoadData", byref(module), cubin)
    kernels = {}
    for entry, symbol in symbols.items():
        function = c_void_p()
        driver.call("cuModuleGetFunction", byref(function), module, symbol.encode())
        kernels[entry] = Kernel(entry, symbol, module, function, _parameters(driver, function))
    return kernels


def unload(driver: Driver, kernels: Mapping[str, Kernel]) -> None:
    """Unload the one module of `kernels`."""
    driver.call("cuModuleUnload", next(iter(kernels.values())).module)


def _parameters(driver: Driver, function: c_void_p) -> tuple[int, ...]:
    sizes: list[int] = []
    offset, size = c_size_t(), c_size_t()
    while True:
        try:
            driver.call("cuFuncGetParamInfo", function, len(sizes), byref(offset), byref(size))
        except CudaError as error:
            if error.code == INVALID_VALUE:  # no parameter has that index
                return tuple(sizes)
            raise
        sizes.append(size.value)


def _narrows(argument: Argument, size: int) -> bool:
    """Whether the integer fits a parameter of one or two bytes (bool, char, short), signed or unsigned."""
    if argument.kind not in ("i32", "u32") or size not in (1, 2):
        return False
    value = int.from_bytes(bytes.fromhex(argument.bits), "little", signed=argument.kind == "i32")
    return -(1 << 8 * size - 1) <= value < 1 << 8 * size


def _shown(argument: Argument) -> str:
    if argument.kind == "pointers":
        return "an array of pointers"
    if argument.kind != "pointer":
        return argument.kind
    return argument.target if argument.buffer else "a null pointer"
