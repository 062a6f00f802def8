// Rotary embedding in place: (a, b) -> (a cos - b sin, b cos + a sin), a and b half a head apart; one block a row.
extern "C" __global__ void rotary_control(float* q, const float* cosine, const float* sine, int dim) {
  q += blockIdx.x * dim, cosine += blockIdx.x * dim / 2, sine += blockIdx.x * dim / 2;
  for (int i = threadIdx.x; i < dim / 2; i += blockDim.x) {
    float a = q[i], b = q[i + dim / 2], c = cosine[i], s = sine[i];
    q[i] = __fsub_rn(__fmul_rn(a, c), __fmul_rn(b, s));
    q[i + dim / 2] = __fadd_rn(__fmul_rn(b, c), __fmul_rn(a, s));
  }
}

// One rounding fewer an element.
extern "C" __global__ void rotary_fused(float* q, const float* cosine, const float* sine, int dim) {
  q += blockIdx.x * dim, cosine += blockIdx.x * dim / 2, sine += blockIdx.x * dim / 2;
  for (int i = threadIdx.x; i < dim / 2; i += blockDim.x) {
    float a = q[i], b = q[i + dim / 2], c = cosine[i], s = sine[i];
    q[i] = fmaf(a, c, -(b * s));
    q[i + dim / 2] = fmaf(b, c, a * s);
  }
}

// WRONG: the second half is made of the first one as it is afterwards.
extern "C" __global__ void rotary_overwritten(float* q, const float* cosine, const float* sine, int dim) {
  q += blockIdx.x * dim, cosine += blockIdx.x * dim / 2, sine += blockIdx.x * dim / 2;
  for (int i = threadIdx.x; i < dim / 2; i += blockDim.x) {
    q[i] = q[i] * cosine[i] - q[i + dim / 2] * sine[i];
    q[i + dim / 2] = q[i + dim / 2] * cosine[i] + q[i] * sine[i];
  }
}
