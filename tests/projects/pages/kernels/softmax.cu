// y[row, :] = softmax(x[row, :]); one warp a row.
template <bool Reciprocal>
__device__ void softmax(const float* x, float* y, int n) {
  x += blockIdx.x * n, y += blockIdx.x * n;
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) top = fmaxf(top, x[i]);
  for (int o = 16; o > 0; o /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  for (int i = threadIdx.x; i < n; i += 32) sum += expf(x[i] - top);
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  for (int i = threadIdx.x; i < n; i += 32)
    y[i] = Reciprocal ? expf(x[i] - top) * (1 / sum) : expf(x[i] - top) / sum;
}
extern "C" __global__ void softmax_control(const float* x, float* y, int n) { softmax<false>(x, y, n); }
extern "C" __global__ void softmax_fast(const float* x, float* y, int n) { softmax<true>(x, y, n); }
