// grouped, variant `control`: the plain reading of kernels/CONTRACT.md, the ancestor of every other variant.
//
// It includes nothing of the project, so that a fault in code that the others share cannot hide here.
// One block serves one 16-row tile of one split and reads K and V for itself, a byte at a time.
//
//   grouped_control_splits<G, D>   grid (80, ceil(rows * G / 16)), block 128, dynamic shared memory
//                                  split_memory_bytes<D>: 29,952 (D=64), 52,480 (D=128), 97,536 (D=256)
//   grouped_control_merge<G, D>    grid (rows * G), block 128, no dynamic shared memory
//
// The lengths are read on the device and never change the grid: one captured graph serves all of them.
// Compile without contraction (--fmad=false, -ffp-contract=off): only __fmaf_rn is a fused multiply-add.
#include <cuda_fp16.h>
#include <mma.h>

namespace control {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kMaxSplits = 80;
constexpr int kMaxRows = 8;
constexpr int kTileTokens = 32;
constexpr int kTileRows = 16;
constexpr float kNothing = -1e30f;      // 0xF149F2CA: the maximum of a row that has seen no token
constexpr float kSeenNothing = -1e20f;  // 0xE0AD78EC: a maximum up to here belongs to such a row
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
  float q = 0x1.6b6bf8p-10f;
  q = __fmaf_rn(q, r, 0x1.122f28p-7f);
  q = __fmaf_rn(q, r, 0x1.55568ap-5f);
  q = __fmaf_rn(q, r, 0x1.5554a4p-3f);
  q = __fmaf_rn(q, r, 0.5f);
  q = __fmaf_rn(q, r, 1.0f);
  q = __fmaf_rn(q, r, 1.0f);
  return __uint_as_float(__float_as_uint(q) + (__float_as_uint(z) << 23));
}

// The contract's trees over 32 columns: x[i] += x[i + o] for i < o; lane 0 then broadcasts the result.
__device__ __forceinline__ float sum_tree(float x) {
  for (int o = 16; o > 0; o /= 2) x += __shfl_down_sync(kAllLanes, x, o);
  return __shfl_sync(kAllLanes, x, 0);
}

__device__ __forceinline__ float max_tree(float x) {
  for (int o = 16; o > 0; o /= 2) x = max_of(x, __shfl_down_sync(kAllLanes, x, o));
  return __shfl_sync(kAllLanes, x, 0);
}

// e4m3fn to f16, exactly: 1 sign, 4 exponent (bias 7), 3 mantissa bits; 0x7F and 0xFF are NaN, no infinity.
__device__ __forceinline__ __half decode_e4m3(unsigned char byte) {
  const unsigned sign = (byte & 0x80u) << 8;
  const unsigned exponent = (byte >> 3) & 0xFu;
  const unsigned mantissa = byte & 0x7u;
  unsigned magnitude = 0;
  if (exponent == 0xFu && mantissa == 0x7u) {
    magnitude = 0x7E00u;
  } else if (exponent != 0) {
    magnitude = ((exponent + 8u) << 10) | (mantissa << 7);
  } else if (mantissa >= 4) {  // subnormal, mantissa * 2^-9: normal in f16
    magnitude = (8u << 10) | ((mantissa & 3u) << 8);
  } else if (mantissa >= 2) {
    magnitude = (7u << 10) | ((mantissa & 1u) << 9);
  } else if (mantissa == 1) {
    magnitude = 6u << 10;
  }
  return __ushort_as_half(static_cast<unsigned short>(sign | magnitude));
}

// ---- Splits -----------------------------------------------------------------------------------------------

// lengths i32 [rows]; a negative length counts as 0.
__device__ __forceinline__ int total_tokens(const int* lengths, int rows) {
  int total = 0;
  for (int row = 0; row < rows; ++row) total = lengths[row] > total ? lengths[row] : total;
  return total;
}

// Splits that exist. There is none where no row sees anything; the workspace is not written then.
__device__ __forceinline__ int active_splits(int total) {
  if (total == 0) return 0;
  if (total <= 128) return 1;
  const int wanted = (total + 63) / 64;
  return wanted < kMaxSplits ? wanted : kMaxSplits;
}

// The shared memory of a block. Rows are padded by 16 bytes, so that a fragment's rows start in different banks.
template <int D>
struct SplitMemory {
  __half q[kTileRows][D + 8];
  __half k[kTileTokens][D + 8];
  __half v[kTileTokens][D + 8];
  __half v_residual[kTileTokens][D + 8];  // V * 2^-11
  __half p[kTileRows][kTileTokens + 8];
  __half r[kTileRows][kTileTokens + 8];
  float score[kTileRows][kTileTokens + 4];
  float tile[kTileRows][D + 4];
  float out[kTileRows][D + 4];
  float row_max[kTileRows];
  float row_sum[kTileRows];
  float rescale[kTileRows];
  int length[kTileRows];  // 0 in padding
};

template <int D>
constexpr int split_memory_bytes =
    2 * (kTileRows + 3 * kTileTokens) * (D + 8) +                  // q, k, v, v_residual
    kTileRows * (4 * (kTileTokens + 8) + 4 * (kTileTokens + 4)) +  // p, r, score
    kTileRows * (8 * (D + 4) + 16);                                // the rest

struct __align__(32) SharedLine {  // load_matrix_sync needs 32-byte alignment
  unsigned char bytes[32];
};

// Byte offset of a visible token's row. A physical page may lie beyond 2^31 bytes.
__device__ __forceinline__ long long token_offset(const int* table, int page, int token,
                                                  long long page_stride, long long token_stride) {
  const long long physical = table[token / page];
  return physical * page_stride + static_cast<long long>(token % page) * token_stride;
}

// score[16, 16 of 32] = q[16, D] k[16 of 32, D]^T, compensated over K16 products.
template <int D>
__device__ __forceinline__ void kahan_qk(SplitMemory<D>& m, int half_tile) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> q;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> k;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> t;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> s;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(s, 0.0f);
  wmma::fill_fragment(c, 0.0f);
  for (int d = 0; d < D; d += 16) {
    wmma::load_matrix_sync(q, &m.q[0][d], D + 8);
    wmma::load_matrix_sync(k, &m.k[16 * half_tile][d], D + 8);
    wmma::fill_fragment(t, 0.0f);
    wmma::mma_sync(t, q, k, t);
    for (int i = 0; i < t.num_elements; ++i) {
      const float y = t.x[i] - c.x[i];
      const float next = s.x[i] + y;
      c.x[i] = (next - s.x[i]) - y;
      s.x[i] = next;
    }
  }
  wmma::store_matrix_sync(&m.score[0][16 * half_tile], s, kTileTokens + 4, wmma::mem_row_major);
}

// One warp, one row; lane = column. visible: how many columns of this tile the row sees; none if 0 or less.
template <int D>
__device__ __forceinline__ void online_softmax(SplitMemory<D>& m, int row, int visible, float score_scale) {
  const int lane = threadIdx.x % 32;
  float p = 0.0f;
  if (visible > 0) {
    const float before = m.row_max[row];
    const float sum = m.row_sum[row];
    const float score = lane < visible ? m.score[row][lane] * score_scale : kNothing;
    const float after = max_of(before, max_tree(score));
    if (lane < visible) p = contract_exp(max_of(score - after, kExpFloor));
    const float tile_sum = sum_tree(p);
    const float rescale = sum > 0.0f ? contract_exp(max_of(before - after, kExpFloor)) : 1.0f;
    __syncwarp();  // every lane has read the state
    if (lane == 0) {
      m.row_max[row] = after;
      m.row_sum[row] = __fmaf_rn(sum, rescale, tile_sum);
      m.rescale[row] = rescale;
    }
  }
  const __half rounded = __float2half_rn(p);
  m.p[row][lane] = rounded;
  m.r[row][lane] = __float2half_rn((p - __half2float(rounded)) * 2048.0f);
}

// tile[16, 16 columns] = P V + R V', in the contract's order, each product's C being the one before's D.
template <int D>
__device__ __forceinline__ void pv(SplitMemory<D>& m, int column) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> weights;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> values;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> tile;
  wmma::fill_fragment(tile, 0.0f);
  for (int token = 0; token < kTileTokens; token += 16) {
    wmma::load_matrix_sync(weights, &m.p[0][token], kTileTokens + 8);
    wmma::load_matrix_sync(values, &m.v[token][column], D + 8);
    wmma::mma_sync(tile, weights, values, tile);
    wmma::load_matrix_sync(weights, &m.r[0][token], kTileTokens + 8);
    wmma::load_matrix_sync(values, &m.v_residual[token][column], D + 8);
    wmma::mma_sync(tile, weights, values, tile);
  }
  wmma::store_matrix_sync(&m.tile[0][column], tile, D + 4, wmma::mem_row_major);
}

}  // namespace control

// q f16 [rows, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [rows];
// partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2] = (max, sum). Active splits and rows < rows are written.
template <int G, int D>
__global__ void __launch_bounds__(control::kThreads)
    grouped_control_splits(const __half* q, const unsigned char* k, const unsigned char* v, const int* table,
                           const int* lengths, int rows, int page, long long k_page_stride,
                           long long k_token_stride, long long v_page_stride, long long v_token_stride,
                           float scale, float k_scale, float v_scale, float* partial, float* lse) {
  using namespace control;
  static_assert(sizeof(SplitMemory<D>) == split_memory_bytes<D>, "the launch uses the formula");
  extern __shared__ SharedLine memory[];
  SplitMemory<D>& m = *reinterpret_cast<SplitMemory<D>*>(memory);

  const int split = blockIdx.x;
  const int total = total_tokens(lengths, rows);
  const int active = active_splits(total);
  if (split >= active) return;
  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int tiles = (total + kTileTokens - 1) / kTileTokens;
  const int base = tiles / active;
  const int extra = tiles % active;
  const int first = split * base + (split < extra ? split : extra);
  const int end = first + base + (split < extra ? 1 : 0);
  const int first_slot = blockIdx.y * kTileRows;  // slot = row * G + head
  const float score_scale = scale * k_scale;

  if (thread < kTileRows) {
    const int row = (first_slot + thread) / G;
    const int length = row < rows ? lengths[row] : 0;
    m.length[thread] = length > 0 ? length : 0;
    m.row_max[thread] = kNothing;
    m.row_sum[thread] = 0.0f;
  }
  for (int i = thread; i < kTileRows * D; i += kThreads) {
    const int slot = first_slot + i / D;
    const int row = slot / G;
    const bool live = row < rows && lengths[row] > 0;  // q of a row of length 0 may hold anything
    m.q[i / D][i % D] = live ? q[slot * D + i % D] : __ushort_as_half(0);
    m.out[i / D][i % D] = 0.0f;
  }

  for (int tile = first; tile < end; ++tile) {
    const int first_token = tile * kTileTokens;
    for (int column = warp; column < kTileTokens; column += kWarps) {
      const int token = first_token + column;
      if (token < total) {
        const unsigned char* k_row = k + token_offset(table, page, token, k_page_stride, k_token_stride);
        const unsigned char* v_row = v + token_offset(table, page, token, v_page_stride, v_token_stride);
        for (int d = lane; d < D; d += 32) {
          const __half value = decode_e4m3(v_row[d]);
          m.k[column][d] = decode_e4m3(k_row[d]);
          m.v[column][d] = value;
          m.v_residual[column][d] = __float2half_rn(__half2float(value) * 0x1p-11f);
        }
      } else {
        for (int d = lane; d < D; d += 32) {
          m.k[column][d] = __ushort_as_half(0);
          m.v[column][d] = __ushort_as_half(0);
          m.v_residual[column][d] = __ushort_as_half(0);
        }
      }
    }
    __syncthreads();
    if (warp < 2) kahan_qk<D>(m, warp);
    __syncthreads();
    for (int row = warp; row < kTileRows; row += kWarps) {
      online_softmax<D>(m, row, m.length[row] - first_token, score_scale);
    }
    __syncthreads();
    for (int column = 16 * warp; column < D; column += 16 * kWarps) pv<D>(m, column);
    __syncthreads();
    // A thread always has the same elements of `out`; `tile` and `rescale` change after two more barriers.
    for (int i = thread; i < kTileRows * D; i += kThreads) {
      const int row = i / D;
      const int d = i % D;
      if (m.length[row] <= first_token) continue;
      m.out[row][d] = __fmaf_rn(m.out[row][d], m.rescale[row], m.tile[row][d]);
    }
  }

  const int slots = rows * G;
  const long long workspace_row = static_cast<long long>(split) * kMaxRows * G + first_slot;
  for (int i = thread; i < kTileRows * D; i += kThreads) {
    const int row = i / D;
    const int d = i % D;
    const float numerator = m.out[row][d] * v_scale;
    if (first_slot + row < slots) partial[(workspace_row + row) * D + d] = numerator + 0.0f;  // never -0
  }
  if (thread < kTileRows && first_slot + thread < slots) {
    lse[(workspace_row + thread) * 2] = m.row_max[thread];
    lse[(workspace_row + thread) * 2 + 1] = m.row_sum[thread];
  }
}

// out f16 [rows, G, D]; one block for each row and head.
template <int G, int D>
__global__ void __launch_bounds__(control::kThreads)
    grouped_control_merge(const int* lengths, int rows, const float* partial, const float* lse, __half* out) {
  using namespace control;
  const int slot = blockIdx.x;
  __half* const out_row = out + slot * D;
  if (lengths[slot / G] <= 0) {
    for (int d = threadIdx.x; d < D; d += kThreads) out_row[d] = __ushort_as_half(0);
    return;
  }

  const int active = active_splits(total_tokens(lengths, rows));
  const float* const state = lse + slot * 2;          // (max, sum) of split s at s * state_stride
  const float* const numerator = partial + slot * D;  // of split s at s * numerator_stride
  constexpr int state_stride = kMaxRows * G * 2;
  constexpr int numerator_stride = kMaxRows * G * D;

  float greatest = kNothing;
  for (int s = 0; s < active; ++s) {
    const float split_max = state[s * state_stride];
    if (split_max <= kSeenNothing) continue;
    greatest = max_of(greatest, split_max);
  }
  float sum = 0.0f;
  for (int s = 0; s < active; ++s) {
    const float split_max = state[s * state_stride];
    if (split_max <= kSeenNothing) continue;
    const float w = contract_exp(max_of(split_max - greatest, kExpFloor));
    sum = __fmaf_rn(w, state[s * state_stride + 1], sum);
  }
  const float inverse = 1.0f / sum;
  for (int d = threadIdx.x; d < D; d += kThreads) {
    float acc = 0.0f;
    for (int s = 0; s < active; ++s) {
      const float split_max = state[s * state_stride];
      if (split_max <= kSeenNothing) continue;
      const float w = contract_exp(max_of(split_max - greatest, kExpFloor));
      acc = __fmaf_rn(w * inverse, numerator[s * numerator_stride + d], acc);
    }
    out_row[d] = __float2half_rn(acc);
  }
}
