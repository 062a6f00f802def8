// The same arithmetic; the last five levels of each tree are shuffles inside the first warp.
__device__ float tree_max(float* scratch, int t) {
    for (int half = 64; half >= 32; half /= 2) {
        if (t < half) scratch[t] = scratch[t] > scratch[t + half] ? scratch[t] : scratch[t + half];
        __syncthreads();
    }
    if (t < 32) {
        float v = scratch[t];
        for (int half = 16; half > 0; half /= 2) {
            const float other = __shfl_down_sync(0xffffffffu, v, half);
            v = v > other ? v : other;
        }
        if (t == 0) scratch[0] = v;
    }
    __syncthreads();
    return scratch[0];
}

__device__ float tree_sum(float* scratch, int t) {
    for (int half = 64; half >= 32; half /= 2) {
        if (t < half) scratch[t] += scratch[t + half];
        __syncthreads();
    }
    if (t < 32) {
        float v = scratch[t];
        for (int half = 16; half > 0; half /= 2) v += __shfl_down_sync(0xffffffffu, v, half);
        if (t == 0) scratch[0] = v;
    }
    __syncthreads();
    return scratch[0];
}

extern "C" __global__ void softmax_fast(const float* x, float* y, int n) {
    __shared__ float scratch[128];
    const float* in = x + (long long)blockIdx.x * n;
    float* out = y + (long long)blockIdx.x * n;
    const int t = threadIdx.x;

    float top = -INFINITY;
    for (int i = t; i < n; i += 128) top = in[i] > top ? in[i] : top;
    scratch[t] = top;
    __syncthreads();
    top = tree_max(scratch, t);
    __syncthreads();

    float sum = 0.0f;
    for (int i = t; i < n; i += 128) sum += expf(in[i] - top);
    scratch[t] = sum;
    __syncthreads();
    const float total = tree_sum(scratch, t);
    for (int i = t; i < n; i += 128) out[i] = expf(in[i] - top) / total;
}
