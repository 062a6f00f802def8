// Features of CUDA that this build does not support: each use is a compile error that names the feature. Anything that
// is not declared at all (a function of CUDA's host interface, for example) gives the compiler's own error.
#pragma once

// For a declaration without a definition: each use is an error with this message. If a compiler does not know the
// attribute, the linker's error has the name.
#define SIMT_GUARD "guard it with #ifdef __CUDACC__ and provide an alternative for the CPU"
#define SIMT_UNSUPPORTED(what) __attribute__((unavailable(what " is not supported on the CPU; " SIMT_GUARD)))

#define __cluster_dims__(...) _Pragma("GCC error \"__cluster_dims__: clusters are not supported on the CPU\"")
#define __block_size__(...) _Pragma("GCC error \"__block_size__: clusters are not supported on the CPU\"")

namespace simt {
struct Unsupported {};
}  // namespace simt

// The first template argument may be the result type, as in tex2D<float>(...).
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
SIMT_NO_FUNCTION(cudaGridDependencySynchronize, "a programmatic dependent launch")
SIMT_NO_FUNCTION(cudaTriggerProgrammaticLaunchCompletion, "a programmatic dependent launch")

SIMT_NO_FUNCTION(clock64, "the GPU's clock")
SIMT_NO_FUNCTION(__brkpt, "a breakpoint")
SIMT_NO_FUNCTION(__pipeline_memcpy_async, "an asynchronous copy (use audit_copy.h)")
SIMT_NO_FUNCTION(__pipeline_commit, "an asynchronous copy (use audit_copy.h)")
SIMT_NO_FUNCTION(__pipeline_wait_prior, "an asynchronous copy (use audit_copy.h)")
SIMT_NO_FUNCTION(__cvta_generic_to_shared, "a shared-memory address as a number")
SIMT_NO_FUNCTION(__isShared, "a query of an address's memory space")
SIMT_NO_FUNCTION(__isGlobal, "a query of an address's memory space")

#undef SIMT_NO_FUNCTION
