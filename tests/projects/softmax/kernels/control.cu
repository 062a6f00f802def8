// y[row, :] = softmax(x[row, :]); one block of 128 threads a row. Sums run in one fixed order: a tree over
// 128 partial sums, thread t adding columns t, t + 128, ... in turn.
extern "C" __global__ void softmax_control(const float* x, float* y, int n) {
    __shared__ float scratch[128];
    const float* in = x + (long long)blockIdx.x * n;
    float* out = y + (long long)blockIdx.x * n;
    const int t = threadIdx.x;

    float top = -INFINITY;
    for (int i = t; i < n; i += 128) top = in[i] > top ? in[i] : top;
    scratch[t] = top;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) scratch[t] = scratch[t] > scratch[t + half] ? scratch[t] : scratch[t + half];
        __syncthreads();
    }
    top = scratch[0];
    __syncthreads();

    float sum = 0.0f;
    for (int i = t; i < n; i += 128) sum += expf(in[i] - top);
    scratch[t] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) scratch[t] += scratch[t + half];
        __syncthreads();
    }
    const float total = scratch[0];
    for (int i = t; i < n; i += 128) out[i] = expf(in[i] - top) / total;
}
