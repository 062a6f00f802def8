// Kernels in the manner of CUDA's samples and of training code: what a file from elsewhere is made of.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>

namespace cg = cooperative_groups;

// One warp a row: mean, then variance, then the row, streamed.
__global__ void __launch_bounds__(128) layernorm_warps(float* __restrict__ out, float* __restrict__ mean,
                                                       float* __restrict__ rstd, const float* __restrict__ inp,
                                                       const float* __restrict__ weight,
                                                       const float* __restrict__ bias, int rows, int columns) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= rows) return;
  const float* x = inp + row * columns;
  float sum = 0.0f;
  for (int i = warp.thread_rank(); i < columns; i += warp.size()) sum += x[i];
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  const float m = sum / columns;
  sum = 0.0f;
#pragma unroll 4
  for (int i = warp.thread_rank(); i < columns; i += warp.size()) {
    const float difference = x[i] - m;
    sum += difference * difference;
  }
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  const float s = rsqrtf(sum / columns + 1e-5f);
  if (warp.thread_rank() == 0) {
    if (mean != nullptr) __stcs(mean + row, m);
    if (rstd != nullptr) __stcs(rstd + row, s);
  }
  for (int c = warp.thread_rank(); c < columns; c += warp.size()) {
    const float n = s * (__ldcs(x + c) - m);
    __stcs(out + row * columns + c, n * weight[c] + bias[c]);
  }
}

// Sum and maximum of a softmax in one pass: a struct goes through the shuffles.
struct __align__(8) SumMax {
  float maximum, sum;
};

__device__ __forceinline__ SumMax merged(SumMax a, SumMax b) {
  const bool larger = a.maximum > b.maximum;
  const SumMax big = larger ? a : b, small = larger ? b : a;
  return {big.maximum, big.sum + small.sum * expf(small.maximum - big.maximum)};
}

__global__ void online_softmax(float* out, const float* inp, int columns) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const float* x = inp + blockIdx.x * columns;
  SumMax all = {-CUDART_INF_F, 0.0f};
  for (int i = warp.thread_rank(); i < columns; i += 32) all = merged(all, SumMax{x[i], 1.0f});
  all = cg::reduce(warp, all, merged);
  for (int i = warp.thread_rank(); i < columns; i += 32)
    out[blockIdx.x * columns + i] = expf(x[i] - all.maximum) / all.sum;
}

// The block's sum in dynamic shared memory, halved until one warp is left.
template <typename T, unsigned Threads>
__global__ void block_reduce(const T* in, T* out, unsigned n) {
  extern __shared__ __align__(16) unsigned char bytes[];
  T* partial = reinterpret_cast<T*>(bytes);
  cg::thread_block block = cg::this_thread_block();
  const unsigned t = threadIdx.x;
  T sum = 0;
  for (unsigned i = blockIdx.x * Threads * 2 + t; i < n; i += Threads * 2 * gridDim.x) {
    sum += in[i];
    if (i + Threads < n) sum += in[i + Threads];
  }
  partial[t] = sum;
  cg::sync(block);
#pragma unroll
  for (unsigned half = Threads / 2; half >= 32; half /= 2) {
    if (t < half) partial[t] = sum = sum + partial[t + half];
    block.sync();
  }
  auto tile = cg::tiled_partition<32>(block);
  if (block.thread_rank() < 32) {
    sum = partial[t];
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) sum += tile.shfl_down(sum, offset);
    if (t == 0) out[blockIdx.x] = sum;
  }
}

__global__ void vector_add(const float4* __restrict__ a, const float* __restrict__ b, float4* c, int n4) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  const float4 x = __ldg(&a[i]), y = *reinterpret_cast<const float4*>(b + 4 * i);
  c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

__global__ void copy_ints(const int4* in, int4* out, int n4) {
  const auto grid = cg::this_grid();
  for (unsigned long long i = grid.thread_rank(); i < n4; i += grid.size()) out[i] = in[i];
}

// One histogram a warp in shared memory, merged into the grid's with atomics.
__global__ void histogram(const uchar4* data, unsigned* bins, int n4) {
  __shared__ unsigned counts[4][256];
  for (int i = threadIdx.x; i < 4 * 256; i += blockDim.x) counts[i / 256][i % 256] = 0;
  __syncthreads();
  unsigned* mine = counts[threadIdx.x / 32];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    const uchar4 four = data[i];
    atomicAdd(mine + four.x, 1);
    atomicAdd(mine + four.y, 1);
    atomicAdd(mine + four.z, 1);
    atomicAdd(mine + four.w, 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) {
    unsigned sum = 0;
    for (int warp = 0; warp < 4; ++warp) sum += counts[warp][i];
    atomicAdd(&bins[i], sum);
  }
}

template <int Tile, int Rows>
__global__ void transpose(float* out, const float* in, int width, int height) {
  __shared__ float tile[Tile][Tile + 1];
  int x = blockIdx.x * Tile + threadIdx.x, y = blockIdx.y * Tile + threadIdx.y;
  for (int j = 0; j < Tile; j += Rows)
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * Tile + threadIdx.x, y = blockIdx.x * Tile + threadIdx.y;
  for (int j = 0; j < Tile; j += Rows)
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

// Prefix sums of a block: each warp by shuffles, the warps' totals by the first warp.
__global__ void scan(const int* in, int* out, int n) {
  __shared__ int totals[32];
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = i < n ? in[i] : 0;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const int below = warp.shfl_up(value, distance);
    if (warp.thread_rank() >= distance) value += below;
  }
  if (warp.thread_rank() == warp.size() - 1) totals[warp.meta_group_rank()] = value;
  block.sync();
  if (warp.meta_group_rank() == 0) {
    const int total = warp.thread_rank() < warp.meta_group_size() ? totals[warp.thread_rank()] : 0;
    totals[warp.thread_rank()] = cg::exclusive_scan(warp, total);
  }
  block.sync();
  if (i < n) out[i] = value + totals[warp.meta_group_rank()];
}

// One atomic for all lanes that found something.
__device__ int next_slot(int* counter) {
  const cg::coalesced_group active = cg::coalesced_threads();
  int first = 0;
  if (active.thread_rank() == 0) first = atomicAdd(counter, static_cast<int>(active.size()));
  return active.shfl(first, 0) + active.thread_rank();
}

__global__ void filter(int* out, int* count, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) out[next_slot(count)] = in[i];
}

// A sum over any group, as a function that does not know which.
__device__ int group_sum(const cg::thread_group& group, int* scratch, int value) {
  const int lane = group.thread_rank();
  for (int i = group.size() / 2; i > 0; i /= 2) {
    scratch[lane] = value;
    group.sync();
    if (lane < i) value += scratch[lane + i];
    group.sync();
  }
  return value;
}

__global__ void any_group(int* sums, const int* in) {
  __shared__ int scratch[128];
  const cg::thread_block block = cg::this_thread_block();
  const int t = block.thread_rank(), mine = in[t];
  const int whole = group_sum(block, scratch, mine);
  const cg::thread_group eight = cg::tiled_partition(block, 8);
  const int part = group_sum(eight, scratch + t / 8 * 8, mine);
  if (t == 0) sums[0] = whole;
  if (eight.thread_rank() == 0) sums[1 + t / 8] = part;
}

__global__ void gelu(half2* x, int n2) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n2) return;
  const float2 v = __half22float2(x[i]);
  const float a = 0.5f * v.x * (1.0f + tanhf(0.7978845608f * (v.x + 0.044715f * v.x * v.x * v.x)));
  const float b = 0.5f * v.y * (1.0f + tanhf(0.7978845608f * (v.y + 0.044715f * v.y * v.y * v.y)));
  x[i] = __hmul2(__floats2half2_rn(a, b), __float2half2_rn(2.0f));
}

// What every tile's thread sees, a row of ten numbers a thread.
template <unsigned Size>
__global__ void tile_facts(unsigned* out) {
  const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
  const unsigned t = cg::this_thread_block().thread_rank();
  unsigned* row = out + 10 * t;
  row[0] = tile.thread_rank();
  row[1] = tile.meta_group_rank();
  row[2] = tile.meta_group_size();
  row[3] = tile.shfl(t, Size - 1);
  row[4] = tile.shfl_up(t, 1);
  row[5] = tile.shfl_down(t, 1);
  row[6] = tile.shfl_xor(t, Size / 2);
  row[7] = tile.ballot(t % 3 == 0);
  row[8] = tile.any(t % 32 == 5) + 2 * tile.all(t < 40);
  row[9] = tile.match_any(t % 2);
}

// The same, of the lanes that are not 0, 3, 6 ... of their warp.
__global__ void coalesced_facts(unsigned* out) {
  const unsigned t = threadIdx.x;
  if (t % 32 % 3 == 0) return;
  const auto group = cg::coalesced_threads();
  unsigned* row = out + 10 * t;
  int equal = 0;
  row[0] = group.thread_rank();
  row[1] = group.size();
  row[2] = group.shfl(t, 2);
  row[3] = group.shfl_up(t, 2);
  row[4] = group.shfl_down(t, 2);
  row[5] = group.ballot(t % 32 < 10);
  row[6] = group.match_any(t / 16);
  row[7] = group.match_all(t / 32, equal) + equal;
  row[8] = cg::reduce(group, t, cg::plus<unsigned>());
  row[9] = cg::inclusive_scan(group, t, cg::greater<unsigned>());
}

// 32 bytes and 12 bytes through shuffles; a tile of a tile; the intrinsics that reduce.
struct Wide {
  double a, b;
  int c, d, e, f;
};

__global__ void wide(double* out, float3* three, int* sums) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto four = cg::tiled_partition<4>(warp);
  const int t = threadIdx.x;
  const Wide got = four.shfl_xor(Wide{t + 0.5, t + 0.25, t, t + 1, t + 2, t + 3}, 1);
  out[t] = got.a + got.b + got.c + got.d + got.e + got.f;
  three[t] = warp.shfl(make_float3(t, t + 1, t + 2), t + 1);
  sums[4 * t] = __reduce_add_sync(~0u, t - 7);
  sums[4 * t + 1] = __reduce_min_sync(~0u, t - 7);
  sums[4 * t + 2] = __reduce_xor_sync(~0u, static_cast<unsigned>(t));
  sums[4 * t + 3] = four.meta_group_size() * 100 + four.meta_group_rank();
}

// A thread hands its neighbour's lane a value through shared memory; with the tile's sync, and without.
template <bool Sync>
__global__ void handed_over(int* out) {
  __shared__ int box[64];
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int t = threadIdx.x;
  box[t] = 10 * t;  // written
  if (Sync) tile.sync();
  out[t] = box[t ^ 1];  // read
}

// Rows of a size that a compiler moves in pieces of its own; with the barrier, and without.
template <bool Sync>
__global__ void filled_rows(int* out) {
  __shared__ int rows[64][6];
  memset(rows[threadIdx.x], threadIdx.x, sizeof(rows[0]));  // filled
  if (Sync) __syncthreads();
  int row[6];
  memcpy(row, rows[63 - threadIdx.x], sizeof(row));  // fetched
  out[threadIdx.x] = row[5];
}

__global__ void uneven(int* out) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = tile.thread_rank();
}

__global__ void tile_in_a_branch(int* out) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  if (tile.thread_rank() < 4) tile.sync();  // waits in vain
  else out[threadIdx.x] = tile.any(1);      // as these do
}
