// The inputs that both operators share, where a token lies in paged storage, and how wide it may be loaded.
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

// The D bytes of a token < total; no other token may be asked for. A page may lie beyond 2^31 bytes.
__device__ __forceinline__ const unsigned char* token_bytes(const Storage& storage, int physical_page,
                                                            int position) {
  return storage.bytes + physical_page * storage.page_stride + position * storage.token_stride;
}

// The widest load, in bytes, to which every 16-byte vector of K and V is aligned: 16, 8 or 1.
__device__ __forceinline__ int widest_load(const Inputs& in) {
  const unsigned long long bits =
      reinterpret_cast<unsigned long long>(in.k.bytes) | reinterpret_cast<unsigned long long>(in.v.bytes) |
      static_cast<unsigned long long>(in.k.page_stride | in.k.token_stride | in.v.page_stride |
                                      in.v.token_stride);
  return bits % 16 == 0 ? 16 : bits % 8 == 0 ? 8 : 1;
}

// One 16-byte vector, by loads of `LoadBytes`.
template <int LoadBytes>
__device__ __forceinline__ uint4 load_vector(const unsigned char* bytes) {
  static_assert(LoadBytes == 16 || LoadBytes == 8 || LoadBytes == 1, "what widest_load returns");
  if constexpr (LoadBytes == 16) {
    return *reinterpret_cast<const uint4*>(bytes);
  } else if constexpr (LoadBytes == 8) {
    const uint2 low = *reinterpret_cast<const uint2*>(bytes);
    const uint2 high = *reinterpret_cast<const uint2*>(bytes + 8);
    return make_uint4(low.x, low.y, high.x, high.y);
  } else {
    unsigned word[4] = {};
#pragma unroll
    for (int i = 0; i < 16; ++i) word[i / 4] |= static_cast<unsigned>(bytes[i]) << 8 * (i % 4);
    return make_uint4(word[0], word[1], word[2], word[3]);
  }
}

}  // namespace paged
