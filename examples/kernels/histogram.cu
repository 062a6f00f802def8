// density[b] = the share of x in [-1 + 2 b / bins, -1 + 2 (b + 1) / bins), in place over earlier batches:
// count[b] += the number of x in the bin. One block of 256 threads, at most 256 bins.
template <bool Floor, bool Reciprocal>
__device__ void histogram(const float* x, int* count, float* density, int n, int bins) {
  __shared__ int shared[256];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) shared[b] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float at = x[i] * (bins / 2);
    int bin = static_cast<int>(Floor ? floorf(at) : at) + bins / 2;
    if (bin >= 0 && bin < bins) atomicAdd(&shared[bin], 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) {
    count[b] += shared[b];
    density[b] = Reciprocal ? shared[b] * (1.0f / n) : static_cast<float>(shared[b]) / n;
  }
}

extern "C" __global__ void histogram_control(const float* x, int* count, float* density, int n, int bins) {
  histogram<true, false>(x, count, density, n, bins);
}
extern "C" __global__ void histogram_reciprocal(const float* x, int* count, float* density, int n, int bins) {
  histogram<true, true>(x, count, density, n, bins);
}
// WRONG: a conversion truncates, so that the two bins at zero are one.
extern "C" __global__ void histogram_truncated(const float* x, int* count, float* density, int n, int bins) {
  histogram<false, false>(x, count, density, n, bins);
}
