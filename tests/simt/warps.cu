// Shuffles, votes and warp barriers. Each kernel writes one row of results for each thread.
#include <cuda_fp16.h>

// mode 0..3: __shfl_sync, up, down, xor
__global__ void shuffles(int mode, int argument, int width, int* out) {
  const int value = 1000 + threadIdx.x;
  int got = -1;
  if (mode == 0) got = __shfl_sync(0xffffffffu, value, argument, width);
  if (mode == 1) got = __shfl_up_sync(0xffffffffu, value, argument, width);
  if (mode == 2) got = __shfl_down_sync(0xffffffffu, value, argument, width);
  if (mode == 3) got = __shfl_xor_sync(0xffffffffu, value, argument, width);
  out[threadIdx.x] = got;
}

__global__ void types(double* d, long long* l, float* f, unsigned* u, __half* h) {
  const int t = threadIdx.x;
  d[t] = __shfl_xor_sync(0xffffffffu, t + 0.25, 1);
  l[t] = __shfl_xor_sync(0xffffffffu, (1LL << 40) + t, 2);
  f[t] = __shfl_xor_sync(0xffffffffu, t * 0.5f, 4);
  u[t] = __shfl_xor_sync(0xffffffffu, 0x80000000u + t, 8);
  h[t] = __shfl_xor_sync(0xffffffffu, __float2half(t * 2.0f), 16);
}

// The halves of a warp go separate ways and meet in no order with each other.
__global__ void halves(int* out) {
  const int lane = threadIdx.x % 32;
  int sum = lane;
  if (lane < 16) {
    for (int o = 8; o > 0; o /= 2) sum += __shfl_xor_sync(0x0000ffffu, sum, o);
  } else {
    for (int o = 8; o > 0; o /= 2) {
      sum += __shfl_xor_sync(0xffff0000u, sum, o);
      __syncwarp(0xffff0000u);
    }
  }
  __syncwarp();
  out[threadIdx.x] = sum;
}

__global__ void votes(unsigned* out) {
  const int lane = threadIdx.x % 32;
  unsigned* row = out + threadIdx.x * 6;
  row[0] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  row[1] = __any_sync(0xffffffffu, lane == 31) + 2 * __any_sync(0xffffffffu, lane > 31);
  row[2] = __all_sync(0xffffffffu, lane < 32) + 2 * __all_sync(0xffffffffu, lane < 31);
  row[3] = row[4] = 0;
  if (lane >= 20) row[3] = __ballot_sync(0xfff00000u, lane & 1);
  if (lane % 4 == 1) row[4] = __activemask();
  row[5] = __match_any_sync(0xffffffffu, lane / 10);
}

// Lane 0 writes, the others read: only __syncwarp stands between.
__global__ void handover(int* out) {
  __shared__ int box[8];
  const int warp = threadIdx.x / 32;
  for (int round = 0; round < 5; ++round) {
    if (threadIdx.x % 32 == 0) box[warp] = 100 * warp + round;
    __syncwarp();
    out[threadIdx.x] += box[warp];
    __syncwarp();
  }
}

// A warp sum for block sizes that are no multiple of 32.
__global__ void short_warp(int* out) {
  const int lane = threadIdx.x % 32, lanes = min(32, static_cast<int>(blockDim.x - threadIdx.x + lane));
  int value = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x), lanes - 1);
  __syncwarp();
  out[threadIdx.x] = value;
}

__global__ void from_outside(float* f, double* d) {
  const int lane = threadIdx.x;
  if (lane < 8) {
    f[lane] = __shfl_sync(0xffu, 1.0f, 9);
    d[lane] = __shfl_sync(0xffu, 1.0, 9);
  }
}

__global__ void not_in_mask(int* out) { out[threadIdx.x] = __shfl_sync(0x7fffffffu, 1, 0); }

__global__ void exited_lane(int* out) {
  if (threadIdx.x == 7) return;
  out[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1, 1);
}

__global__ void different_masks(int* out) {
  if (threadIdx.x < 16) __syncwarp(0xffffffffu); else __syncwarp(0xfffffffeu);
  out[threadIdx.x] = 1;
}

__global__ void different_operations(int* out) {
  if (threadIdx.x % 2) __syncwarp(); else out[0] = __any_sync(0xffffffffu, 1);
}

// Lane 7 leaves after the others have begun to wait for it.
__global__ void late_exit(int* out) {
  if (threadIdx.x == 7) {
    for (int i = 0; i < 100; ++i) __nanosleep(10);
    return;
  }
  out[threadIdx.x] = __any_sync(0xffffffffu, 1);
}
