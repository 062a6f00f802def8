// What the replay is tried with: one kernel for each thing that can happen. fake_driver.c has the same kernels.

extern "C" __global__ void scale(const float* x, float* y, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}

extern "C" __global__ void increment(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += 1.0f;
}

// Every thread's values go through dynamic shared memory of n floats.
extern "C" __global__ void reversed(const float* x, float* y, int n) {
  extern __shared__ float whole[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) whole[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = whole[n - 1 - i];
}

// The address modulo 256, then the scalars as they came.
extern "C" __global__ void arrived(unsigned long long* y, const char* at, signed char a, unsigned b, long long c,
                                   double d) {
  y[0] = reinterpret_cast<unsigned long long>(at) % 256;
  y[1] = static_cast<unsigned long long>(static_cast<long long>(a));
  y[2] = b;
  y[3] = static_cast<unsigned long long>(c);
  y[4] = static_cast<unsigned long long>(__double_as_longlong(d));
}

// One element past the end, and an input.
extern "C" __global__ void overrun(float* x, float* y, int n) {
  y[n] = 1.0f;
  x[0] = 5.0f;
}

extern "C" __global__ void stray(float* y) { *reinterpret_cast<volatile float*>(8ull) = *y; }

extern "C" __global__ void spin(volatile float* y) {
  while (y[0] != 123.0f) {
  }
}
