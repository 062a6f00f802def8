// Shared memory in every form: static, dynamic, in templates, in device functions, aligned, out of bounds.

struct Pair {
  int first, second;
};

// tile, row /* a comment; with { braces } */
template <int N, typename T>
__global__ void templated(T* out) {
  __shared__ T tile[N][2], total;
  __shared__ alignas(16) Pair pairs[N];
  const int t = threadIdx.x;
  tile[t][0] = t;
  tile[t][1] = t * 10;
  pairs[t] = {t, -t};
  if (t == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, tile[N - 1 - t][1] + pairs[(t + 1) % N].first);
  __syncthreads();
  out[t] = total + sizeof(tile) + tile[t][0];
}

template <int N>
__device__ int* scratch() {
  __shared__ int words[N];
  return words;
}

__global__ void functions(int* out) {
  int* a = scratch<4>();
  int* b = scratch<8>();
  int* again = scratch<4>();
  if (threadIdx.x == 0) {
    out[0] = a == again;
    out[1] = a != b && (a + 4 <= b || b + 8 <= a);
    out[2] = a[0];
    out[3] = b[7];
  }
}

__global__ void dynamic(int words, int* out) {
  extern __shared__ __align__(16) unsigned char memory[];
  int* ints = reinterpret_cast<int*>(memory);
  out[2 * blockIdx.x] = ints[words - 1];
  ints[words - 1] = 5;
  out[2 * blockIdx.x + 1] = ints[words - 1];
}

__global__ void past_dynamic(int words) {
  extern __shared__ int more[];
  more[words] = 1;
}

__global__ void past_static(int at) {
  __shared__ int ten[10];
  __shared__ volatile float other[3];
  other[0] = 1.0f;
  ten[at] = 1;
}

__global__ void large(int* out) {
  __shared__ int fits[12 * 1024];
  fits[threadIdx.x] = 1;
  out[0] = fits[0];
}

__global__ void too_large(int* out) {
  __shared__ int fits[12 * 1024];
  __shared__ char more;
  fits[0] = more = 1;
  out[0] = fits[0];
}

__global__ void alignment(unsigned long long* out) {
  __shared__ char c[3];
  __shared__ double d;
  __shared__ __attribute__((aligned(64))) float f[2];
  c[0] = 1;
  d = 2;
  f[0] = 3;
  out[0] = reinterpret_cast<unsigned long long>(&d) % 16;
  out[1] = reinterpret_cast<unsigned long long>(f) % 128;
}
