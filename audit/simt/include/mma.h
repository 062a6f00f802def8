// nvcuda::wmma for f16 operands and f32 accumulators, on the tensor-core model of the target architecture.
//
// Loads and stores access memory lane by lane without waiting, because CUDA promises no order between lanes. So a
// missing __syncwarp() shows. Only mma_sync synchronises the lanes.
#pragma once

#include "cuda_fp16.h"
#include "fragment_layout.h"
#include "../warp_mma.h"

#ifndef SIMT_ARCH
#define SIMT_ARCH sm_90
#endif

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

namespace detail {

template <typename Use, int M, int N> struct Layout;
template <int M, int N> struct Layout<matrix_a, M, N> {
  static constexpr int distinct = M / 2, elements = 16;
  static constexpr simt::Coordinate at(int lane, int i) { return simt::a_coordinate(M, lane, i); }
};
template <int M, int N> struct Layout<matrix_b, M, N> {
  static constexpr int distinct = N / 2, elements = 16;
  static constexpr simt::Coordinate at(int lane, int i) { return simt::b_coordinate(lane, i); }
};
template <int M, int N> struct Layout<accumulator, M, N> {
  static constexpr int distinct = 8, elements = 8;
  static constexpr simt::Coordinate at(int lane, int i) { return simt::c_coordinate(M, lane, i); }
};

constexpr bool is_shape(int m, int n, int k) {
  return k == 16 && ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32));
}
template <int M> constexpr simt::MmaShape shape() {
  return M == 16 ? simt::MmaShape::m16n16 : M == 32 ? simt::MmaShape::m32n8 : simt::MmaShape::m8n32;
}

}  // namespace detail

// Operands hold 16 elements, as in CUDA. Past the first `distinct` they repeat, and mma_sync reads only the first ones.
template <typename Use, int M, int N, int K, typename T, typename Order = void>
struct fragment {
  static_assert(detail::is_shape(M, N, K), "wmma on the CPU supports 16x16x16, 32x8x16 and 8x32x16");
  using element_type = T;
  static constexpr int num_elements = detail::Layout<Use, M, N>::elements;
  T x[num_elements];
};

template <typename Use, int M, int N, int K, typename T, typename Order>
inline void fill_fragment(fragment<Use, M, N, K, T, Order>& f, const T& value) {
  for (T& element : f.x) element = value;
}

namespace detail {

constexpr std::size_t element_at(simt::Coordinate at, unsigned stride, bool row_order) {
  return row_order ? std::size_t{stride} * at.row + at.column : std::size_t{stride} * at.column + at.row;
}

template <typename Use, int M, int N, int K, typename T, typename Order>
inline void load(fragment<Use, M, N, K, T, Order>& f, const T* memory, unsigned stride, bool row_order) {
  using Where = Layout<Use, M, N>;
  const T* lane_memory = memory + element_at(Where::at(static_cast<int>(simt::current_lane()), 0), stride, row_order);
#pragma GCC unroll 16
  for (int i = 0; i < Where::elements; ++i)
    f.x[i] = lane_memory[element_at(Where::at(0, i % Where::distinct), stride, row_order)];
}

}  // namespace detail

template <typename Use, int M, int N, int K, typename T>
inline void load_matrix_sync(fragment<Use, M, N, K, T, row_major>& f, const T* memory, unsigned stride) {
  detail::load(f, memory, stride, true);
}
template <typename Use, int M, int N, int K, typename T>
inline void load_matrix_sync(fragment<Use, M, N, K, T, col_major>& f, const T* memory, unsigned stride) {
  detail::load(f, memory, stride, false);
}
template <int M, int N, int K, typename T>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* memory, unsigned stride, layout_t order) {
  detail::load(f, memory, stride, order == mem_row_major);
}
template <int M, int N, int K, typename T>
inline void store_matrix_sync(T* memory, const fragment<accumulator, M, N, K, T>& f, unsigned stride,
                              layout_t order) {
  using Where = detail::Layout<accumulator, M, N>;
  const bool row_order = order == mem_row_major;
  T* lane_memory = memory + detail::element_at(Where::at(static_cast<int>(simt::current_lane()), 0), stride, row_order);
#pragma GCC unroll 16
  for (int i = 0; i < Where::elements; ++i) lane_memory[detail::element_at(Where::at(0, i), stride, row_order)] = f.x[i];
}

template <int M, int N, int K, typename AOrder, typename BOrder>
inline void mma_sync(fragment<accumulator, M, N, K, float>& d, const fragment<matrix_a, M, N, K, __half, AOrder>& a,
                     const fragment<matrix_b, M, N, K, __half, BOrder>& b,
                     const fragment<accumulator, M, N, K, float>& c, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::warp_mma(detail::shape<M>(),
                 {reinterpret_cast<const std::uint16_t*>(a.x), reinterpret_cast<const std::uint16_t*>(b.x), c.x, d.x,
                  simt::Arch::SIMT_ARCH},
                 {file, line});
}

}  // namespace wmma
}  // namespace nvcuda
