// grouped, variant `rolled_steps`, parent `warp_roles`: the QK steps are a loop, five at a time, so that the code of a
// phase is a third as long.
//
//   grouped_rolled_steps_splits<G, D, Page>   grid (80, row tiles), block 256, dynamic shared memory
//                                             direct::role_memory_bytes<D>:
//                                             113,168 (G=6, D=256), 45,584 (G=3, D=64)
//   grouped_rolled_steps_merge<G, D>          grid (rows * G, D / 64), block 64, no dynamic shared memory
#include <cuda_fp16.h>

#include "merge.cuh"
#include "warp_roles.cuh"

// q f16 [rows, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [rows];
// partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2].
template <int G, int D, int Page>
__global__ void __launch_bounds__(grouped::direct::kRoleThreads, 2)
    grouped_rolled_steps_splits(const __half* q, const unsigned char* k, const unsigned char* v,
                                    const int* table, const int* lengths, int rows, int page,
                                    long long k_page_stride, long long k_token_stride, long long v_page_stride,
                                    long long v_token_stride, float scale, float k_scale, float v_scale,
                                    float* partial, float* lse) {
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, rows, page, scale, k_scale, v_scale};
  using grouped::direct::WarpRoles;
  grouped::direct::run_split<WarpRoles<G, D, Page, 5>, G, D>(in, partial, lse);
}

// out f16 [rows, G, D].
template <int G, int D>
__global__ void __launch_bounds__(64)
    grouped_rolled_steps_merge(const int* lengths, int rows, const float* partial, const float* lse,
                                   __half* out) {
  __shared__ grouped::direct::MergeMemory memory;
  grouped::direct::merge_splits<G, D, 64>(memory, lengths, rows, partial, lse, out);
}
