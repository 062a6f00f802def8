"""The part of CUDA's driver API that a replay needs, called directly in `libcuda.so.1`.

The driver never removes an exported symbol, so this works with every driver from 550 (CUDA 12.4) on, whatever Python
packages are installed. Names and signatures are those of cuda.h; its macros choose the `_v2` names.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_float,
    c_int,
    c_size_t,
    c_ubyte,
    c_uint,
    c_uint64,
    c_ulonglong,
    c_void_p,
)
from typing import Any

import msgspec

LIBRARY = "libcuda.so.1"
_INSTALL = "install NVIDIA's driver 550 or later, or let the container see the GPU"

INVALID_VALUE, OUT_OF_MEMORY = 1, 2
# CUresult: illegal address, stack error, illegal instruction, misaligned address, address space, pc, launch failed.
_MEMORY_FAULTS = (700, 714, 715, 716, 717, 718, 719)
_ASSERT = 710
# Not a kernel's fault: out of memory, device unavailable, ECC, NVLink, contained, system not ready, driver mismatch.
_DEVICE_FAULTS = (2, 46, 214, 220, 226, 802, 803)

_COMPUTE_MAJOR, _COMPUTE_MINOR, _MULTIPROCESSORS, _SHARED_OPT_IN = 75, 76, 16, 97


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("parameters", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    )


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute, with the values of a cooperative launch and of clusters."""

    _fields_ = (("id", c_int), ("padding", c_int), ("value", c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    )


_SIGNATURES: Mapping[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (POINTER(c_char), c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemsetD8_v2": (c_uint64, c_ubyte, c_size_t),
    "cuMemsetD32Async": (c_uint64, c_uint, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuModuleGetGlobal_v2": (POINTER(c_uint64), POINTER(c_size_t), c_void_p, c_char_p),
    "cuMemcpyDtoD_v2": (c_uint64, c_uint64, c_size_t),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuFuncGetParamInfo": (c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_size_t)),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, POINTER(c_void_p), c_void_p),
    "cuLaunchKernelEx": (POINTER(LaunchConfig), c_void_p, POINTER(c_void_p), c_void_p),
    "cuGraphKernelNodeGetAttribute": (c_void_p, c_int, POINTER(c_uint)),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, POINTER(c_void_p)),
    "cuGraphGetNodes": (c_void_p, POINTER(c_void_p), POINTER(c_size_t)),
    "cuGraphGetEdges": (c_void_p, POINTER(c_void_p), POINTER(c_void_p), POINTER(c_size_t)),
    "cuGraphNodeGetType": (c_void_p, POINTER(c_int)),
    "cuGraphKernelNodeGetParams_v2": (c_void_p, POINTER(KernelNode)),
    "cuGraphInstantiateWithFlags": (POINTER(c_void_p), c_void_p, c_ulonglong),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphExecDestroy": (c_void_p,),
    "cuFuncGetName": (POINTER(c_char_p), c_void_p),
    "cuFuncGetModule": (POINTER(c_void_p), c_void_p),
    "cuKernelGetFunction": (POINTER(c_void_p), c_void_p),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}


class DeviceInfo(msgspec.Struct, frozen=True):
    """The device that replays run on: the first that CUDA_VISIBLE_DEVICES leaves."""

    name: str
    arch: str  # sm_90
    cuda: str  # the CUDA version that the driver supports: 13.0
    driver: str  # the driver's own version, from NVML; empty without NVML
    memory: int  # bytes in all
    multiprocessors: int
    shared_limit: int  # the most shared memory that a block can have, in bytes

    def described(self) -> str:
        """The text that records keep."""
        return f"{self.name}, {self.arch}, driver {self.driver or 'unknown'}, CUDA {self.cuda}"


class NoDriver(Exception):
    """There is no driver, it is too old, or it sees no device."""


class Refused(Exception):
    """The machine or the bundle prevents a replay; no kernel is at fault."""


class CudaError(Exception):
    """A driver call failed; the message contains the error's name and text."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def kind(self) -> str:
        """A `Crashed.kind`: memory, assert or launch; or `device` if no kernel is at fault."""
        if self.code in _MEMORY_FAULTS:
            return "memory"
        if self.code in _DEVICE_FAULTS:
            return "device"
        return "assert" if self.code == _ASSERT else "launch"


class Driver:
    """The driver, initialised. Raises NoDriver, whose message says what to do."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise NoDriver(f"no CUDA driver: {error}; {_INSTALL}") from None
        self._functions: dict[str, Any] = {}
        for name, arguments in _SIGNATURES.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                raise NoDriver(f"this CUDA driver is too old: it lacks {name}; {_INSTALL}") from None
            function.argtypes, function.restype = arguments, c_int
            self._functions[name] = function
        try:
            self.call("cuInit", 0)
            self.device = c_int()
            self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        except CudaError as error:
            raise NoDriver(f"the CUDA driver sees no usable device: {error}; {_INSTALL}") from None

    def enter(self) -> None:
        """Make the device's primary context current in this thread. torch uses the same context."""
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver. Raises CudaError unless it succeeds."""
        if (code := self.status(name, *arguments)) != 0:
            raise CudaError(
                code, f"{name}: {self._text('cuGetErrorName', code)}: {self._text('cuGetErrorString', code)}"
            )

    def status(self, name: str, *arguments: Any) -> int:
        """Call a function of the driver and return its CUresult."""
        return int(self._functions[name](*arguments))

    def info(self) -> DeviceInfo:
        """The device's properties; needs no context and no device memory."""
        name, memory, version = (c_char * 256)(), c_size_t(), c_int()
        self.call("cuDeviceGetName", name, 256, self.device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), self.device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        return DeviceInfo(
            name=name.value.decode(errors="replace"),
            arch=f"sm_{self._attribute(_COMPUTE_MAJOR)}{self._attribute(_COMPUTE_MINOR)}",
            cuda=f"{version.value // 1000}.{version.value % 1000 // 10}",
            driver=_driver_version(),
            memory=memory.value,
            multiprocessors=self._attribute(_MULTIPROCESSORS),
            shared_limit=self._attribute(_SHARED_OPT_IN),
        )

    def _attribute(self, attribute: int) -> int:
        value = c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self.device)
        return value.value

    def _text(self, function: str, code: int) -> str:
        text = c_char_p()
        self.status(function, code, ctypes.byref(text))
        return (text.value or b"unknown error %d" % code).decode(errors="replace")


def _driver_version() -> str:
    """The driver's version from NVML, which comes with it: 580.159.04."""
    text = (c_char * 96)()
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != 0 or nvml.nvmlSystemGetDriverVersion(text, c_uint(96)) != 0:
            return ""
    except (OSError, AttributeError):
        return ""
    return text.value.decode(errors="replace")
