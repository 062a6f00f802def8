// Kernels whose parameters and grids the launch tests vary.

__global__ void scale(int* x, int n) {
  if (static_cast<int>(threadIdx.x) < n) x[threadIdx.x] *= 2;
}

__global__ void kinds(double* out, int a, unsigned b, const long long c, unsigned long long d, float e, double f) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d;
  out[4] = e;
  out[5] = f;
}

enum class Mode : unsigned char { plain = 2 };

__global__ void small_kinds(double* out, bool a, signed char b, unsigned short c, Mode d) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = static_cast<int>(d);
}

__global__ void nothing() {}

// counts [gridDim.z, gridDim.y, gridDim.x, blockDim.z, blockDim.y, blockDim.x]
__global__ void whole_grid(int* counts) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  counts[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}

struct Shape {
  short rows, columns;
};
__global__ void by_value(Shape) {}

__global__ void far(char* base, long long offset) { *reinterpret_cast<int*>(base + offset) *= 2; }
