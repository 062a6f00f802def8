// y[row, i] = x[row, 0] + ... + x[row, i]; one block of 128 threads a row, a tile of 128 elements at a time.
template <bool Carried>
__device__ void scan_by_doubling(const float* x, float* y, int n) {
  __shared__ float tile[128];
  x += blockIdx.x * n, y += blockIdx.x * n;
  float carry = 0;
  for (int start = 0; start < n; start += 128) {
    int i = start + threadIdx.x;
    float sum = i < n ? x[i] : 0;
    for (int o = 1; o < 128; o *= 2) {
      tile[threadIdx.x] = sum;
      __syncthreads();
      if (threadIdx.x >= o) sum += tile[threadIdx.x - o];
      __syncthreads();
    }
    if (i < n) y[i] = carry + sum;
    tile[threadIdx.x] = sum;
    __syncthreads();
    if (Carried || start + 128 < 256) carry += tile[127];
    __syncthreads();
  }
}

// In order, by one thread.
extern "C" __global__ void scan_control(const float* x, float* y, int n) {
  float sum = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < n; ++i) y[blockIdx.x * n + i] = sum += x[blockIdx.x * n + i];
}
extern "C" __global__ void scan_doubling(const float* x, float* y, int n) { scan_by_doubling<true>(x, y, n); }
// WRONG: from the third tile on, the tiles before the last are missing.
extern "C" __global__ void scan_two_tiles(const float* x, float* y, int n) { scan_by_doubling<false>(x, y, n); }
