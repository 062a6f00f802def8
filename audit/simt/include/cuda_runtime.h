// The part of CUDA's runtime header that kernels use, for CUDA C++ compiled by the host's C++ compiler.
//
// __CUDA_ARCH__ is that of the modelled GPU, so that device code takes the same branches as there. __CUDACC__ stays
// undefined, which excludes code guarded with it (inline PTX, host launchers) from this build. __shared__ declarations are rewritten before the compiler sees them.
#pragma once

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../device.h"
#include "vector_types.h"

#ifndef CUDA_VERSION  // as <cuda.h> and <cuda_runtime_api.h> define them
#define CUDA_VERSION 13000
#endif
#ifndef CUDART_VERSION
#define CUDART_VERSION CUDA_VERSION
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ /* empty, because libstdc++ writes __attribute__((__noinline__)) */
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

extern __thread const uint3 threadIdx;
extern __thread const uint3 blockIdx;
extern __thread const dim3 blockDim;
extern __thread const dim3 gridDim;
constexpr int warpSize = 32;

namespace simt {

// The build puts this into the body of each kernel that has __launch_bounds__(threads, ...).
template <typename... Others>
inline void require_launch_bounds(const char* file, int line, unsigned threads, Others...) {
  if (blockDim.x * blockDim.y * blockDim.z > threads) exceeded_launch_bounds({file, line}, threads);
}

}  // namespace simt

#include "simt_atomics.h"
#include "simt_math.h"
#include "simt_sync.h"
#include "simt_unsupported.h"
