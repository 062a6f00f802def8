// Matrix instructions. The layouts are those of include/fragment_layout.h.
#pragma once

#include "../include/fragment_layout.h"
#include "../ptx_support.h"
#include "../warp_mma.h"
#include "words.h"

#ifndef SIMT_ARCH
#define SIMT_ARCH sm_90
#endif

namespace ptx {

// The addresses that the lanes of a warp bring, for all of them.
struct RowAddresses {
  u64 of_lane[32];
};
// It writes to the stacks of other lanes, which are no memory of the kernel's.
__attribute__((no_sanitize_thread)) inline void complete_rows(simt::LaneSlot* slots, std::uint32_t) {
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned other = 0; other < 32; ++other)
      static_cast<RowAddresses*>(slots[lane].operands)->of_lane[other] = slots[other].value;
}
inline constexpr simt::Collective kLoadMatrix = {"ldmatrix", true, complete_rows};
inline constexpr simt::Collective kStoreMatrix = {"stmatrix", true, complete_rows};

template <unsigned Count>
inline void exchange_rows(const simt::Collective& collective, RowAddresses& rows, u64 own, simt::Site site) {
  if (simt::current_lane() < 8 * Count && own % 16 != 0) simt::misaligned(own, 16, site);
  simt::LaneSlot slot{};
  slot.value = own;
  slot.operands = &rows;
  slot.site = site;
  simt::join_collective(collective, simt::kFullMask, slot);
}

// Register i of lane 4g + t holds from row g of matrix i the elements 2t and 2t + 1; transposed, from column g.
template <unsigned Count, bool Transposed>
inline void load_matrices(u32* d, u64 own, simt::Site site) {
  RowAddresses rows;
  exchange_rows<Count>(kLoadMatrix, rows, own, site);
  const unsigned g = simt::current_lane() / 4, t = simt::current_lane() % 4;
  for (unsigned i = 0; i < Count; ++i) {
    const auto row = [&](unsigned r) { return reinterpret_cast<const u16*>(rows.of_lane[8 * i + r]); };
    if constexpr (Transposed)
      d[i] = row(2 * t)[g] | static_cast<u32>(row(2 * t + 1)[g]) << 16;
    else
      d[i] = reinterpret_cast<const u32*>(row(g))[t];
  }
}
template <unsigned Count, bool Transposed>
inline void store_matrices(const u32* s, u64 own, simt::Site site) {
  RowAddresses rows;
  exchange_rows<Count>(kStoreMatrix, rows, own, site);
  const unsigned g = simt::current_lane() / 4, t = simt::current_lane() % 4;
  for (unsigned i = 0; i < Count; ++i) {
    const auto row = [&](unsigned r) { return reinterpret_cast<u16*>(rows.of_lane[8 * i + r]); };
    if constexpr (Transposed) {
      row(2 * t)[g] = static_cast<u16>(s[i]);
      row(2 * t + 1)[g] = static_cast<u16>(s[i] >> 16);
    } else {
      reinterpret_cast<u32*>(row(g))[t] = s[i];
    }
  }
}

inline void multiply(simt::MmaShape shape, f32* d, const u32* a, const u32* b, const f32* c, simt::Site site) {
  simt::warp_mma(shape, {reinterpret_cast<const u16*>(a), reinterpret_cast<const u16*>(b), c, d, simt::Arch::SIMT_ARCH}, site);
}

// Fragments of wmma: of the registers of A and B only the first M/2 or N/2 halves hold elements.
template <typename Element, typename Place>
inline void load_elements(u32* d, unsigned count, u64 address, u32 stride, bool is_row_major, Place place) {
  const int lane = static_cast<int>(simt::current_lane());
  Element* const to = reinterpret_cast<Element*>(d);
  for (unsigned i = 0; i < count; ++i) {
    const simt::Coordinate at = place(lane, static_cast<int>(i));
    const u64 row = static_cast<u64>(at.row), column = static_cast<u64>(at.column);
    to[i] = *reinterpret_cast<const Element*>(address + sizeof(Element) * (is_row_major ? row * stride + column : column * stride + row));
  }
}
template <int M>
constexpr int columns_of = M == 16 ? 16 : M == 32 ? 8 : 32;
template <int M, typename>
inline void load_fragment_a(u32* d, u64 address, u32 stride, bool is_row_major) {
  for (int i = 0; i < 8; ++i) d[i] = 0;
  load_elements<u16>(d, M / 2, address, stride, is_row_major, [](int lane, int i) { return simt::a_coordinate(M, lane, i); });
}
template <int M, typename>
inline void load_fragment_b(u32* d, u64 address, u32 stride, bool is_row_major) {
  for (int i = 0; i < 8; ++i) d[i] = 0;
  load_elements<u16>(d, columns_of<M> / 2, address, stride, is_row_major, [](int lane, int i) { return simt::b_coordinate(lane, i); });
}
template <int M, typename>
inline void load_fragment_c(u32* d, u64 address, u32 stride, bool is_row_major) {
  load_elements<u32>(d, 8, address, stride, is_row_major, [](int lane, int i) { return simt::c_coordinate(M, lane, i); });
}
template <int M, typename>
inline void store_fragment(const u32* s, u64 address, u32 stride, bool is_row_major) {
  const int lane = static_cast<int>(simt::current_lane());
  for (int i = 0; i < 8; ++i) {
    const simt::Coordinate at = simt::c_coordinate(M, lane, i);
    const u64 row = static_cast<u64>(at.row), column = static_cast<u64>(at.column);
    *reinterpret_cast<u32*>(address + 4 * (is_row_major ? row * stride + column : column * stride + row)) = s[i];
  }
}

// Integer products: A[M,K] B[K,8] + C[M,8] with bytes; M is 8 or 16, K is 16 or 32. Register j of A holds four bytes of
// row g (or g + 8, odd j) from column 4t (j < 2) or 4t + 16; register j of B from row 4t + 16 j of column g.
template <int M, int K, typename A, typename B>
struct IntegerOperands {
  const u32 *a, *b;
  const s32* c;
  s32* d;
  bool saturates;
};
template <int M, int K, typename A, typename B>
__attribute__((no_sanitize_thread)) inline void complete_integers(simt::LaneSlot* slots, std::uint32_t) {
  typedef IntegerOperands<M, K, A, B> Operands;
  const auto of = [&](int lane) { return static_cast<const Operands*>(slots[lane].operands); };
  s32 left[M][K], right[K][8];
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int j = 0; j < M * K / 128; ++j)
      for (int e = 0; e < 4; ++e)
        left[M == 16 ? g + 8 * (j & 1) : g][4 * t + e + (M == 16 ? 16 * (j >> 1) : 16 * j)] = static_cast<A>(of(lane)->a[j] >> 8 * e);
    for (int j = 0; j < K / 16; ++j)
      for (int e = 0; e < 4; ++e) right[4 * t + e + 16 * j][g] = static_cast<B>(of(lane)->b[j] >> 8 * e);
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < M / 4; ++i) {
      const int row = lane / 4 + 8 * (i >> 1), column = 2 * (lane % 4) + (i & 1);
      s64 sum = of(lane)->c[i];
      for (int k = 0; k < K; ++k) sum += static_cast<s64>(left[row][k]) * right[k][column];
      of(lane)->d[i] = of(lane)->saturates ? static_cast<s32>(sum > 2147483647LL ? 2147483647LL : sum < -2147483648LL ? -2147483648LL : sum)
                                           : static_cast<s32>(static_cast<u32>(sum));
    }
}
template <int M, int K, typename A, typename B>
inline constexpr simt::Collective kIntegerProduct = {"mma of integers", true, complete_integers<M, K, A, B>};
template <int M, int K, typename A, typename B, bool Saturates>
inline void multiply_integers(s32* d, const u32* a, const u32* b, const s32* c, simt::Site site) {
  IntegerOperands<M, K, A, B> mine{a, b, c, d, Saturates};
  simt::LaneSlot slot{};
  slot.operands = &mine;
  slot.site = site;
  simt::join_collective(kIntegerProduct<M, K, A, B>, simt::kFullMask, slot);
}

}  // namespace ptx
