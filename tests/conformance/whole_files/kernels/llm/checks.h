// What every file of the library checks on the host, and the number type of its tensors.
#pragma once
#include <cublas_v2.h>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(ENABLE_BF16)
typedef __nv_bfloat16 floatX;
#define CUBLAS_LOWP CUDA_R_16BF
#elif defined(ENABLE_FP16)
typedef half floatX;
#define CUBLAS_LOWP CUDA_R_16F
#else
typedef float floatX;
#define CUBLAS_LOWP CUDA_R_32F
#endif

inline void cuda_check(cudaError_t error, const char* file, int line) {
  if (error != cudaSuccess) {
    fprintf(stderr, "[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}
#define cudaCheck(err) (cuda_check(err, __FILE__, __LINE__))

inline void cublasCheck(cublasStatus_t status, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    printf("[cuBLAS ERROR]: %d %s %d\n", status, file, line);
    exit(EXIT_FAILURE);
  }
}
#define cublasCheck(status) (cublasCheck((status), __FILE__, __LINE__))

static cublasHandle_t cublas_handle;
static cublasComputeType_t cublas_compute_type = CUBLAS_COMPUTE_32F;
static void* cublaslt_workspace = NULL;

class NvtxRange {
 public:
  NvtxRange(const char* s) { nvtxRangePush(s); }
  ~NvtxRange() { nvtxRangePop(); }
};
#define NVTX_RANGE_FN() NvtxRange nvtx_range(__FUNCTION__)

template <class T>
__host__ __device__ T ceil_div(T dividend, T divisor) {
  return (dividend + divisor - 1) / divisor;
}

inline float* make_random_float(size_t n) {
  float* values = (float*)malloc(n * sizeof(float));
  for (size_t i = 0; i < n; i++) values[i] = ((float)rand() / RAND_MAX) * 2.f - 1.f;
  return values;
}

template <class D, class T>
void validate_result(D* device_result, const T* cpu_reference, const char* name, size_t n, T tolerance = (T)1e-4) {
  D* out_gpu = (D*)malloc(n * sizeof(D));
  cudaCheck(cudaMemcpy(out_gpu, device_result, n * sizeof(D), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < n; i++) {
    if (fabs((T)out_gpu[i] - cpu_reference[i]) > tolerance) {
      printf("Mismatch of %s at %zu: CPU_ref: %f vs GPU: %f\n", name, i, (double)cpu_reference[i], (double)out_gpu[i]);
      exit(EXIT_FAILURE);
    }
  }
  free(out_gpu);
}
