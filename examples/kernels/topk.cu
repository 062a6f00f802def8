// The k greatest of each row and where they are; one warp a row, one round a value.

// The greatest of the row's values below (bound, last), in the order of value, then of index.
__device__ int next_greatest(const float* x, int n, float bound, int last, float* found) {
  float best = -INFINITY;
  int at = n;
  for (int i = threadIdx.x; i < n; i += 32) {
    bool left = x[i] < bound || (x[i] == bound && i > last);
    if (left && (at == n || x[i] > best)) best = x[i], at = i;
  }
  for (int o = 16; o > 0; o /= 2) {
    float other = __shfl_xor_sync(~0u, best, o);
    int theirs = __shfl_xor_sync(~0u, at, o);
    if (theirs < n && (at == n || other > best || (other == best && theirs < at))) best = other, at = theirs;
  }
  *found = best;
  return at;
}

template <bool Descending, bool Ties>
__device__ void topk(const float* x, float* values, int* indices, int n, int k) {
  x += blockIdx.x * n, values += blockIdx.x * k, indices += blockIdx.x * k;
  float bound = INFINITY, found;
  int last = -1;
  for (int j = 0; j < k; ++j) {
    int at = next_greatest(x, n, bound, Ties ? last : n, &found);
    int place = Descending ? j : k - 1 - j;
    if (threadIdx.x == 0) values[place] = found, indices[place] = at < n ? at : 0;
    bound = found, last = at;
  }
}

extern "C" __global__ void topk_control(const float* x, float* values, int* indices, int n, int k) {
  topk<true, true>(x, values, indices, n, k);
}
extern "C" __global__ void topk_ascending(const float* x, float* values, int* indices, int n, int k) {
  topk<false, true>(x, values, indices, n, k);
}
// WRONG: of several equal values only one is found.
extern "C" __global__ void topk_distinct(const float* x, float* values, int* indices, int n, int k) {
  topk<true, false>(x, values, indices, n, k);
}
