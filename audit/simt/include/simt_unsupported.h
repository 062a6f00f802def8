// What CUDA has and this build has not, so that its use is a compile error that names it and says so. What is not
// declared at all (a function of CUDA's host interface, say) ends in the compiler's own error with its name.
#pragma once

// On a declaration without a definition: an error at each use, with the message; where a compiler does not know the
// attribute, the linker's error has the name.
#define SIMT_UNSUPPORTED(what) __attribute__((unavailable(what " is not supported on the CPU")))

#define __cluster_dims__(...) _Pragma("GCC error \"__cluster_dims__: clusters are not supported on the CPU\"")
#define __block_size__(...) _Pragma("GCC error \"__block_size__: clusters are not supported on the CPU\"")

namespace simt {
struct Unsupported {};
}  // namespace simt

// Its first template argument may name the result, as in tex2D<float>(...).
#define SIMT_NO_FUNCTION(name, what)                             \
  template <typename R = simt::Unsupported, typename... T>       \
  SIMT_UNSUPPORTED(#name "(): " what) R name(T&&...);

struct SIMT_UNSUPPORTED("a texture") cudaTextureObject_t;
struct SIMT_UNSUPPORTED("a surface") cudaSurfaceObject_t;
SIMT_NO_FUNCTION(tex1Dfetch, "a texture")
SIMT_NO_FUNCTION(tex1D, "a texture")
SIMT_NO_FUNCTION(tex2D, "a texture")
SIMT_NO_FUNCTION(tex2DLod, "a texture")
SIMT_NO_FUNCTION(tex2DLayered, "a texture")
SIMT_NO_FUNCTION(tex3D, "a texture")
SIMT_NO_FUNCTION(surf2Dread, "a surface")
SIMT_NO_FUNCTION(surf2Dwrite, "a surface")

SIMT_NO_FUNCTION(cudaLaunchKernel, "a launch from a kernel")
SIMT_NO_FUNCTION(cudaLaunchDevice, "a launch from a kernel")
SIMT_NO_FUNCTION(cudaDeviceSynchronize, "a launch from a kernel")
SIMT_NO_FUNCTION(cudaGridDependencySynchronize, "a launch that depends on another")
SIMT_NO_FUNCTION(cudaTriggerProgrammaticLaunchCompletion, "a launch that depends on another")

SIMT_NO_FUNCTION(clock64, "the GPU's clock")
SIMT_NO_FUNCTION(__brkpt, "a breakpoint")
SIMT_NO_FUNCTION(__pipeline_memcpy_async, "an asynchronous copy (audit_copy.h has one)")
SIMT_NO_FUNCTION(__pipeline_commit, "an asynchronous copy (audit_copy.h has one)")
SIMT_NO_FUNCTION(__pipeline_wait_prior, "an asynchronous copy (audit_copy.h has one)")
SIMT_NO_FUNCTION(__cvta_generic_to_shared, "an address of shared memory as a number")
SIMT_NO_FUNCTION(__isShared, "asking for the memory of an address")
SIMT_NO_FUNCTION(__isGlobal, "asking for the memory of an address")

#undef SIMT_NO_FUNCTION
