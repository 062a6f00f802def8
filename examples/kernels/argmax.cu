// index[row] = an index of the row's greatest element; one warp a row.
template <bool Last>
__device__ void argmax(const float* x, int* index, int n, float least) {
  x += blockIdx.x * n;
  float best = least;
  int at = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    if (Last ? x[i] >= best : x[i] > best) best = x[i], at = i;
  for (int o = 16; o > 0; o /= 2) {
    float other = __shfl_xor_sync(~0u, best, o);
    int theirs = __shfl_xor_sync(~0u, at, o);
    if (other > best || (other == best && (Last ? theirs > at : theirs < at))) best = other, at = theirs;
  }
  if (threadIdx.x == 0) index[blockIdx.x] = at;
}

extern "C" __global__ void argmax_control(const float* x, int* index, int n) { argmax<false>(x, index, n, -INFINITY); }
extern "C" __global__ void argmax_last(const float* x, int* index, int n) { argmax<true>(x, index, n, -INFINITY); }
// WRONG: no element of a row of negative numbers is greater than 0.
extern "C" __global__ void argmax_from_zero(const float* x, int* index, int n) { argmax<false>(x, index, n, 0); }
