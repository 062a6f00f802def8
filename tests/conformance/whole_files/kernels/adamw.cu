// One step of AdamW, in place: m and v are the moments, params_memory is what the optimizer trains.
#include "llm/packed.cuh"

// start + weight * (end - start), by two fused multiply-adds
__device__ inline float lerp(float start, float end, float weight) { return fma(weight, end, fma(-weight, start, start)); }

template <typename Tp, typename Tg>
__device__ void adamw_update(Tp* params, float* m_memory, float* v_memory, const Tg* grads, size_t idx, float learning_rate,
                             float beta1, float beta2, float beta1_correction, float beta2_correction, float eps,
                             float weight_decay) {
  float grad = (float)grads[idx];
  float m = m_memory[idx];
  float v = v_memory[idx];
  m = lerp(grad, m, beta1);
  m_memory[idx] = m;
  v = lerp(grad * grad, v, beta2);
  v_memory[idx] = v;
  m /= beta1_correction;
  v /= beta2_correction;
  float old = (float)params[idx];
  params[idx] = (Tp)(old - (learning_rate * (m / (sqrtf(v) + eps) + weight_decay * old)));
}

__global__ void adamw_kernel1(float* params_memory, const float* grads_memory, float* m_memory, float* v_memory,
                              long num_parameters, float learning_rate, float beta1, float beta2, float beta1_correction,
                              float beta2_correction, float eps, float weight_decay) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= num_parameters) return;
  adamw_update(params_memory, m_memory, v_memory, grads_memory, i, learning_rate, beta1, beta2, beta1_correction,
               beta2_correction, eps, weight_decay);
}

template <typename Tp, typename Tg>
__global__ void adamw_kernel2(Tp* params_memory, const Tg* grads_memory, float* m_memory, float* v_memory,
                              long num_parameters, float learning_rate, float beta1, float beta2, float beta1_correction,
                              float beta2_correction, float eps, float weight_decay) {
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < num_parameters; i += (long)gridDim.x * blockDim.x)
    adamw_update(params_memory, m_memory, v_memory, grads_memory, i, learning_rate, beta1, beta2, beta1_correction,
                 beta2_correction, eps, weight_decay);
}

typedef struct {
  float *params, *grads, *m, *v;
  long count;
} OptimizerState;

void adamw(int kernel_num, OptimizerState* state, int t, float learning_rate = 1e-3, float beta1 = 0.9, float beta2 = 0.999,
           float eps = 1e-8, float weight_decay = 0.0) {
  float beta1_correction = 1.0f - powf(beta1, t);
  float beta2_correction = 1.0f - powf(beta2, t);
  unsigned int block_size = 512;
  unsigned int num_blocks = ceil_div(state->count, (long)block_size);
  if (kernel_num == 1)
    adamw_kernel1<<<num_blocks, block_size>>>(state->params, state->grads, state->m, state->v, state->count, learning_rate,
                                              beta1, beta2, beta1_correction, beta2_correction, eps, weight_decay);
  else
    adamw_kernel2<<<num_blocks / 4, block_size>>>(state->params, state->grads, state->m, state->v, state->count,
                                                  learning_rate, beta1, beta2, beta1_correction, beta2_correction, eps,
                                                  weight_decay);
  cudaCheck(cudaGetLastError());
}

int main(int argc, char** argv) {
  OptimizerState state = {NULL, NULL, NULL, NULL, 1048576};
  cudaCheck(cudaMalloc((void**)&state.params, state.count * sizeof(float)));
  for (int t = 1; t <= 10; t++) adamw(argc > 1 ? atoi(argv[1]) : 2, &state, t);
  return EXIT_SUCCESS;
}
