// The inputs that both operators share, and where a token lies in paged storage.
#pragma once
#include <cuda_fp16.h>

namespace paged {

// K or V: e4m3fn [pages, page, 1, D], a token's D bytes contiguous, the other strides in bytes.
struct Storage {
  const unsigned char* bytes;
  long long page_stride;
  long long token_stride;
};

struct Inputs {
  const __half* q;  // [rows, G, D], contiguous, at any 2-byte offset
  Storage k;
  Storage v;
  const int* table;    // [n]: logical page to physical page
  const int* lengths;  // [rows]: tokens each row sees; negative counts as 0
  int rows;
  int page;  // tokens a page
  float scale;
  float k_scale;
  float v_scale;
};

// The length of the longest row, at least 0.
__device__ __forceinline__ int total_tokens(const int* lengths, int rows) {
  int total = 0;
  for (int row = 0; row < rows; ++row) total = lengths[row] > total ? lengths[row] : total;
  return total;
}

// The D bytes of a token < total; no other token may be asked for. A page may lie beyond 2^31 bytes.
__device__ __forceinline__ const unsigned char* token_bytes(const Storage& storage, int physical_page,
                                                            int position) {
  return storage.bytes + physical_page * storage.page_stride + position * storage.token_stride;
}

}  // namespace paged
