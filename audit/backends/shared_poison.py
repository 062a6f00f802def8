"""Poison in the shared memory of all multiprocessors: hardware keeps there what the last kernel left.

A kernel that reads shared memory before anyone wrote it finds zeros on an idle GPU, and looks right. One block a
multiprocessor, with all the shared memory that a block can have, fills it before each step.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint, c_void_p

from audit.backends.driver import CudaError, Driver

NAN, HIGH = 0x7FC1_7FC1, 0x7B80_7B80
"""NaN as f32 and as two f16; large and finite as both (1.3e36, 61,440 twice)."""
_THREADS = 1024
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_PTX = b"""
.version 6.4
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 heap[];
.visible .entry kernel_audit_poison(.param .u32 word, .param .u32 bytes)
{
  .reg .pred %done;
  .reg .b32 %word, %bytes, %at, %stride, %base;
  ld.param.u32 %word, [word];
  ld.param.u32 %bytes, [bytes];
  mov.u32 %base, heap;
  mov.u32 %at, %tid.x;
  shl.b32 %at, %at, 2;
  mov.u32 %stride, %ntid.x;
  shl.b32 %stride, %stride, 2;
next:
  setp.ge.u32 %done, %at, %bytes;
  @%done bra end;
  .reg .b32 %address;
  add.u32 %address, %base, %at;
  st.volatile.shared.u32 [%address], %word;
  add.u32 %at, %at, %stride;
  bra next;
end:
  ret;
}
"""


class SharedPoison:
    """The kernel that fills shared memory, loaded in the current context.

    `unavailable` says why nothing is filled: the driver cannot compile the kernel.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver, self._module, self._function = driver, c_void_p(), c_void_p()
        self.unavailable = ""
        info = driver.info()
        self._blocks, self._bytes = 2 * info.multiprocessors, info.shared_limit
        try:
            driver.call("cuModuleLoadData", byref(self._module), _PTX)
            driver.call("cuModuleGetFunction", byref(self._function), self._module, b"kernel_audit_poison")
            driver.call("cuFuncSetAttribute", self._function, _DYNAMIC_SHARED, self._bytes)
        except CudaError as error:
            self.unavailable = str(error)

    def fill(self, word: int) -> None:
        """Fill the shared memory of every multiprocessor with a word, and wait."""
        if self.unavailable:
            return
        values = (c_uint(word), c_uint(self._bytes))
        arguments = (c_void_p * 2)(*(ctypes.addressof(value) for value in values))
        grid, block = (self._blocks, 1, 1), (_THREADS, 1, 1)
        self._driver.call("cuLaunchKernel", self._function, *grid, *block, self._bytes, None, arguments, None)
        self._driver.call("cuCtxSynchronize")
