// scalar, variant `control`: the plain reading of kernels/CONTRACT.md, the ancestor of every other variant.
//
// It includes nothing of the project, so that a fault in code that the others share cannot hide here.
// One block serves one head of one partition and reads K and V for itself, a byte at a time.
//
//   scalar_control_partitions<G, D>   grid (256, G), block 256, no dynamic shared memory
//   scalar_control_reduce<G, D>       grid (G), block 256, no dynamic shared memory
//
// The length is read on the device and never changes the grid: one captured graph serves every length.
// Compile without contraction (--fmad=false, -ffp-contract=off): only __fmaf_rn is a fused multiply-add.
#include <cuda_fp16.h>

namespace control {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPartitions = 256;  // no more than threads: the reducer's thread i holds partition i
constexpr int kPartitionTokens = 1024;
constexpr float kNoMaximum = -1e20f;  // 0xE0AD78EC: below every score
constexpr float kExpFloor = -80.0f;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// ---- Arithmetic -------------------------------------------------------------------------------------------

// Not fmaxf, which would hide a NaN and may return either of two zeros.
__device__ __forceinline__ float max_of(float a, float b) { return a > b ? a : b; }

// exp(x) for x in [-80, 0]: x = n ln2 + r, a polynomial in r, then n is added to the exponent field.
__device__ __forceinline__ float contract_exp(float x) {
  const float z = __fmaf_rn(x, 0x1.715476p+0f, 12582912.0f);  // 1.5 * 2^23: the low bits of z are n
  const float n = z - 12582912.0f;
  float r = __fmaf_rn(n, -0x1.62e430p-1f, x);
  r = __fmaf_rn(n, 0x1.05c610p-29f, r);
  float q = __fmaf_rn(0x1.6b6bf8p-10f, r, 0x1.122f28p-7f);
  q = __fmaf_rn(q, r, 0x1.55568ap-5f);
  q = __fmaf_rn(q, r, 0x1.5554a4p-3f);
  q = __fmaf_rn(q, r, 0.5f);
  q = __fmaf_rn(q, r, 1.0f);
  q = __fmaf_rn(q, r, 1.0f);
  return __uint_as_float(__float_as_uint(q) + (__float_as_uint(z) << 23));
}

// e4m3fn, exactly: 1 sign, 4 exponent (bias 7), 3 mantissa bits; 0x7F and 0xFF are NaN, there is no infinity.
__device__ __forceinline__ float decode_e4m3(unsigned char byte) {
  const unsigned sign = (byte & 0x80u) << 24;
  const unsigned exponent = (byte >> 3) & 0xFu;
  const unsigned mantissa = byte & 0x7u;
  if (exponent == 0xFu && mantissa == 0x7u) return __uint_as_float(sign | 0x7FC00000u);
  if (exponent != 0) return __uint_as_float(sign | (exponent + 120u) << 23 | mantissa << 20);
  const float magnitude = static_cast<float>(static_cast<int>(mantissa)) * 0x1p-9f;
  return __uint_as_float(sign | __float_as_uint(magnitude));  // a zero keeps its sign
}

// The contract's trees, x[i] = x[i] + x[i + o] for i < o, over 2 * o lanes. Only lane 0 has the result.
__device__ __forceinline__ float sum_to_lane_0(float x, int o) {
  for (; o > 0; o /= 2) x += __shfl_down_sync(kAllLanes, x, o);
  return x;
}

__device__ __forceinline__ float max_to_lane_0(float x, int o) {
  for (; o > 0; o /= 2) x = max_of(x, __shfl_down_sync(kAllLanes, x, o));
  return x;
}

// The tree over each warp, then the tree over the 8 warps; all threads return the result. warp_value [8], in shared
// memory, serves one call only: other threads may still read it when this returns.
__device__ __forceinline__ float block_sum(float x, float* warp_value) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  x = sum_to_lane_0(x, 16);
  if (lane == 0) warp_value[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = sum_to_lane_0(lane < kWarps ? warp_value[lane] : 0.0f, kWarps / 2);
    if (lane == 0) warp_value[0] = x;
  }
  __syncthreads();
  return warp_value[0];
}

__device__ __forceinline__ float block_max(float x, float* warp_value) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  x = max_to_lane_0(x, 16);
  if (lane == 0) warp_value[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = max_to_lane_0(lane < kWarps ? warp_value[lane] : kNoMaximum, kWarps / 2);
    if (lane == 0) warp_value[0] = x;
  }
  __syncthreads();
  return warp_value[0];
}

// ---- Storage ----------------------------------------------------------------------------------------------

// Byte offset of a token < length. A physical page may lie beyond 2^31 bytes.
__device__ __forceinline__ long long token_offset(const int* table, int page, int token,
                                                  long long page_stride, long long token_stride) {
  const long long physical = table[token / page];
  return physical * page_stride + static_cast<long long>(token % page) * token_stride;
}

}  // namespace control

// q f16 [1, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [1];
// partial f32 [1, G, 256, D], normalised and v-scaled; maximum, sums f32 [1, G, 256]. Only partitions
// with a token < length are written.
template <int G, int D>
__global__ void __launch_bounds__(control::kThreads)
    scalar_control_partitions(const __half* q, const unsigned char* k, const unsigned char* v,
                              const int* table, const int* lengths, int page, long long k_page_stride,
                              long long k_token_stride, long long v_page_stride, long long v_token_stride,
                              float scale, float k_scale, float v_scale, float* partial, float* maximum,
                              float* sums) {
  using namespace control;
  static_assert(D % 32 == 0 && D <= kThreads, "a lane has D / 32 dimensions in QK, a thread one in PV");
  __shared__ float score[kPartitionTokens];
  __shared__ float weight[kPartitionTokens];
  __shared__ float warp_max[kWarps];
  __shared__ float warp_sum[kWarps];

  const int partition = blockIdx.x;
  const int head = blockIdx.y;
  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int first = partition * kPartitionTokens;
  const int length = lengths[0];  // negative counts as 0
  if (first >= length) return;
  const int tokens = length - first < kPartitionTokens ? length - first : kPartitionTokens;
  const float score_scale = scale * k_scale;

  for (int i = warp; i < tokens; i += kWarps) {
    const unsigned char* k_row = k + token_offset(table, page, first + i, k_page_stride, k_token_stride);
    float acc = 0.0f;
    for (int d = lane; d < D; d += 32) {
      acc = __fmaf_rn(__half2float(q[head * D + d]), decode_e4m3(k_row[d]), acc);
    }
    acc = sum_to_lane_0(acc, 16);
    if (lane == 0) score[i] = acc * score_scale;
  }
  __syncthreads();

  float greatest = kNoMaximum;
  for (int i = thread; i < tokens; i += kThreads) greatest = max_of(greatest, score[i]);
  greatest = block_max(greatest, warp_max);

  float sum = 0.0f;
  for (int i = thread; i < tokens; i += kThreads) {
    const float p = contract_exp(max_of(score[i] - greatest, kExpFloor));
    weight[i] = p;
    sum += p;
  }
  sum = block_sum(sum, warp_sum);  // its barriers publish the weights too

  const int row = head * kPartitions + partition;
  if (thread == 0) {
    maximum[row] = greatest;
    sums[row] = sum;
  }
  if (thread < D) {
    float acc = 0.0f;
    for (int i = 0; i < tokens; ++i) {
      const unsigned char* v_row = v + token_offset(table, page, first + i, v_page_stride, v_token_stride);
      acc = __fmaf_rn(weight[i], decode_e4m3(v_row[thread]), acc);
    }
    partial[row * D + thread] = acc * ((1.0f / sum) * v_scale);
  }
}

// out f16 [1, G, D]; one block for each head. A length of 0 or less gives zeros without reading the workspace.
template <int G, int D>
__global__ void __launch_bounds__(control::kThreads)
    scalar_control_reduce(const int* lengths, const float* partial, const float* maximum, const float* sums,
                          __half* out) {
  using namespace control;
  __shared__ float weight[kPartitions];
  __shared__ float warp_max[kWarps];
  __shared__ float warp_sum[kWarps];

  const int head = blockIdx.x;
  const int thread = threadIdx.x;
  const int length = lengths[0];
  if (length <= 0) {
    if (thread < D) out[head * D + thread] = __ushort_as_half(0);
    return;
  }

  const int partitions = (length + kPartitionTokens - 1) / kPartitionTokens;
  const int row = head * kPartitions;
  const bool live = thread < partitions;
  const float own = live ? maximum[row + thread] : kNoMaximum;
  const float greatest = block_max(own, warp_max);
  const float w = live ? sums[row + thread] * contract_exp(max_of(own - greatest, kExpFloor)) : 0.0f;
  weight[thread] = w;
  const float total = block_sum(w, warp_sum);  // its barriers publish the weights too

  if (thread < D) {
    float acc = 0.0f;
    for (int i = 0; i < partitions; ++i) {
      acc = __fmaf_rn(weight[i], partial[(row + i) * D + thread], acc);
    }
    out[head * D + thread] = __float2half_rn(acc * (1.0f / total));
  }
}
