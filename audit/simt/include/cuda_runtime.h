// The part of CUDA's runtime header that kernels use, for a CPU: CUDA C++ compiled by the host's C++ compiler.
//
// __CUDA_ARCH__ and __CUDACC__ stay undefined: what a source guards with them (inline PTX, host launchers) is not
// for this build. __shared__ declarations are rewritten before the compiler sees them.
#pragma once

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../device.h"
#include "vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ /* libstdc++ writes __attribute__((__noinline__)), so this can only vanish */
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

extern __thread const uint3 threadIdx;
extern __thread const uint3 blockIdx;
extern __thread const dim3 blockDim;
extern __thread const dim3 gridDim;
constexpr int warpSize = 32;

#include "simt_atomics.h"
#include "simt_math.h"
#include "simt_sync.h"
#include "simt_unsupported.h"
