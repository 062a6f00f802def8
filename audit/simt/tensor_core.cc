// The fast form of the tensor-core model: AVX2, eight output columns at a time. Bit for bit the function of
// tensor_core_plain.cc, which is the one to read first.
//
// Why no step here can round wrongly:
// - A product's magnitude is an integer below 2^22, moved left by F-20, and the L of them sum within int32
//   (asserted below). c's magnitude is below 2^(F+1). With c the sum may leave int32, so c is added in
//   binary64, exactly.
// - The scale 2^(e_max-F) has an exponent in [-151, 104], so the scaled sum is an exact, normal binary64.
// - Clearing its 29 low mantissa bits keeps 24 significant bits: rounding toward zero to binary32, provided
//   that the result is normal. A subnormal result is exact anyway: with a non-zero product e_max >= -28, so
//   the sum is a multiple of 2^-53; without one the sum is c, at most 24 bits and a multiple of 2^-149.
// - No overflow: products sum to less than 2^36, and vanish beside a c of 2^58 or more, which then remains.
#include "tensor_core.h"

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#if !defined(__AVX2__)
#error "tensor_core.cc needs the baseline flags -mavx2 -mfma -mf16c"
#endif

namespace simt {
namespace {

constexpr int kTile = 16;             // rows, columns and depth of a decoded tile
constexpr int kLanes = 8;             // int32 or binary32 lanes of a vector
constexpr int kZeroExponent = -1000;  // below every product and every c: a zero takes no part in e_max

// A tile of operands as integers: value = significand * 2^(exponent - 10 - shift of decode_f16).
struct Tile {
  alignas(32) std::int32_t significand[kTile][kTile];
  alignas(32) std::int32_t exponent[kTile][kTile];
};

struct Decoded {
  __m256i significand, exponent, non_finite;
};

template <int Shift>
Decoded decode_f16(const std::uint16_t* source) {
  const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFF));
  const __m256i field = _mm256_srli_epi32(magnitude, 10);
  const __m256i one = _mm256_set1_epi32(1);
  // A subnormal has the exponent of the least normal number and no hidden bit: field - pinned is -1 for it.
  const __m256i pinned = _mm256_max_epi32(field, one);
  const __m256i fraction = _mm256_and_si256(bits, _mm256_set1_epi32(0x3FF));
  const __m256i hidden = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(field, pinned), one), 10);
  const __m256i sign = _mm256_or_si256(_mm256_slli_epi32(bits, 16), one);  // or 1: vpsignd turns a 0 into 0
  Decoded out;
  out.significand = _mm256_sign_epi32(_mm256_slli_epi32(_mm256_or_si256(fraction, hidden), Shift), sign);
  out.exponent =
      _mm256_blendv_epi8(_mm256_sub_epi32(pinned, _mm256_set1_epi32(15)), _mm256_set1_epi32(kZeroExponent),
                         _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256()));
  out.non_finite = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7BFF));
  return out;
}

__m256i* at(std::int32_t* p) { return reinterpret_cast<__m256i*>(p); }
__m256i load(const std::int32_t* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }

// (products + c_term) * 2^(e_max - F) rounded toward zero to binary32, four lanes.
template <int F>
__m128 round_toward_zero(__m128i products, __m128i c_term, __m128i e_max) {
  const __m256d sum = _mm256_add_pd(_mm256_cvtepi32_pd(products), _mm256_cvtepi32_pd(c_term));
  const __m256i scale =
      _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm_add_epi32(e_max, _mm_set1_epi32(1023 - F))), 52);
  const __m256d scaled = _mm256_mul_pd(sum, _mm256_castsi256_pd(scale));
  const __m256d mask = _mm256_castsi256_pd(_mm256_set1_epi64x(-(std::int64_t{1} << 29)));
  return _mm256_cvtpd_ps(_mm256_and_pd(scaled, mask));
}

// One step of the model: L products of a row of A with the L rows of b's tile from `depth` on, for the
// columns `column` to column+7. c and the result are binary32 bit patterns.
template <int F, int L>
__m256i one_step(const std::int32_t* a_significand, const std::int32_t* a_exponent, const Tile& b, int depth,
                 int column, __m256i c) {
  static_assert((std::int64_t{L} * 2047 * 2047 << (F - 20)) <= std::numeric_limits<std::int32_t>::max());
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i c_field = _mm256_and_si256(_mm256_srli_epi32(c, 23), _mm256_set1_epi32(0xFF));
  const __m256i c_pinned = _mm256_max_epi32(c_field, one);
  // A c of zero gets -126, which changes nothing: it is below every product, and without one the result is 0.
  const __m256i c_exponent = _mm256_sub_epi32(c_pinned, _mm256_set1_epi32(127));
  __m256i e_max = c_exponent;
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i)
    e_max = _mm256_max_epi32(
        e_max, _mm256_add_epi32(_mm256_set1_epi32(a_exponent[i]), load(&b.exponent[depth + i][column])));

  __m256i products = _mm256_setzero_si256();
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) {
    // The high half of a's 32-bit lane is zero, so vpmaddwd is a signed 16x16 product.
    const __m256i product =
        _mm256_madd_epi16(_mm256_set1_epi32(a_significand[i]), load(&b.significand[depth + i][column]));
    const __m256i shift = _mm256_sub_epi32(_mm256_sub_epi32(e_max, _mm256_set1_epi32(a_exponent[i])),
                                           load(&b.exponent[depth + i][column]));
    // The sign comes after the shift: truncation is toward zero. vpsrlvd gives 0 from a count of 32 on.
    const __m256i truncated = _mm256_srlv_epi32(_mm256_abs_epi32(product), shift);
    products = _mm256_add_epi32(products, _mm256_sign_epi32(truncated, product));
  }

  const __m256i hidden = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(c_field, c_pinned), one), 23);
  const __m256i c_fraction = _mm256_and_si256(c, _mm256_set1_epi32(0x7FFFFF));
  const __m256i c_magnitude = _mm256_slli_epi32(_mm256_or_si256(c_fraction, hidden), F - 23);
  const __m256i c_term =
      _mm256_sign_epi32(_mm256_srlv_epi32(c_magnitude, _mm256_sub_epi32(e_max, c_exponent)), c);
  const __m128 low = round_toward_zero<F>(_mm256_castsi256_si128(products), _mm256_castsi256_si128(c_term),
                                          _mm256_castsi256_si128(e_max));
  const __m128 high =
      round_toward_zero<F>(_mm256_extracti128_si256(products, 1), _mm256_extracti128_si256(c_term, 1),
                           _mm256_extracti128_si256(e_max, 1));
  return _mm256_castps_si256(_mm256_set_m128(high, low));
}

// The result of a chain that has a NaN or an infinity in it, c included. Where the chain is cut into steps
// does not matter: finite steps never overflow, and no step turns a NaN or an infinity back into a number.
std::uint32_t non_finite_result(const std::uint16_t* a, const std::uint16_t* b, std::ptrdiff_t b_stride,
                                int depth, std::uint32_t c) {
  constexpr std::uint32_t kNan = 0x7FFFFFFFu, kInfinity = 0x7F800000u;
  const std::uint32_t c_magnitude = c & 0x7FFFFFFFu;
  if (c_magnitude > kInfinity) return kNan;
  bool infinity_of_sign[2] = {false, false};
  if (c_magnitude == kInfinity) infinity_of_sign[c >> 31] = true;
  for (int i = 0; i < depth; ++i) {
    const unsigned x = a[i], y = b[i * b_stride];
    const unsigned x_magnitude = x & 0x7FFFu, y_magnitude = y & 0x7FFFu;
    const unsigned larger = std::max(x_magnitude, y_magnitude), smaller = std::min(x_magnitude, y_magnitude);
    if (larger > 0x7C00u || (larger == 0x7C00u && smaller == 0)) return kNan;
    if (larger == 0x7C00u) infinity_of_sign[(x ^ y) >> 15] = true;
  }
  if (infinity_of_sign[0] && infinity_of_sign[1]) return kNan;
  return infinity_of_sign[1] ? kInfinity | 0x80000000u : kInfinity;
}

// d = a b + c for at most kTile rows, and columns and depth of 8 or 16. Each pointer is at the tile's first
// element, in a matrix with rows of k elements (a) or n (the others).
template <int F, int L>
void tile_product(int rows, int columns, int depth, std::ptrdiff_t k, std::ptrdiff_t n,
                  const std::uint16_t* a, const std::uint16_t* b, const float* c, float* d) {
  constexpr int kShiftA = (F - 20) / 2, kShiftB = F - 20 - kShiftA;  // F-20, so that both fit int16
  static_assert((2047 << kShiftB) <= std::numeric_limits<std::int16_t>::max());
  Tile ta, tb;
  __m256i row_non_finite[kTile];
  __m256i column_non_finite[kTile / kLanes];
  const __m256i zero = _mm256_setzero_si256();

  for (int r = 0; r < rows; ++r) {
    row_non_finite[r] = zero;
    for (int i = 0; i < depth; i += kLanes) {
      const Decoded x = decode_f16<kShiftA>(a + r * k + i);
      _mm256_store_si256(at(&ta.significand[r][i]),
                         _mm256_and_si256(x.significand, _mm256_set1_epi32(0xFFFF)));
      _mm256_store_si256(at(&ta.exponent[r][i]), x.exponent);
      row_non_finite[r] = _mm256_or_si256(row_non_finite[r], x.non_finite);
    }
    row_non_finite[r] = _mm256_set1_epi32(_mm256_testz_si256(row_non_finite[r], row_non_finite[r]) ? 0 : -1);
    // A depth of 8 where L is 16: zero products take no part.
    for (int i = depth; i < kTile; i += kLanes) {
      _mm256_store_si256(at(&ta.significand[r][i]), zero);
      _mm256_store_si256(at(&ta.exponent[r][i]), _mm256_set1_epi32(kZeroExponent));
    }
  }
  for (int j = 0; j < columns; j += kLanes) {
    column_non_finite[j / kLanes] = zero;
    for (int i = 0; i < depth; ++i) {
      const Decoded x = decode_f16<kShiftB>(b + i * n + j);
      _mm256_store_si256(at(&tb.significand[i][j]), x.significand);
      _mm256_store_si256(at(&tb.exponent[i][j]), x.exponent);
      column_non_finite[j / kLanes] = _mm256_or_si256(column_non_finite[j / kLanes], x.non_finite);
    }
    for (int i = depth; i < kTile; ++i) {
      _mm256_store_si256(at(&tb.significand[i][j]), zero);
      _mm256_store_si256(at(&tb.exponent[i][j]), zero);
    }
  }

  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < columns; j += kLanes) {
      const __m256i c_bits = _mm256_castps_si256(_mm256_loadu_ps(c + r * n + j));
      __m256i accumulator = c_bits;
      for (int i = 0; i < depth; i += L)
        accumulator = one_step<F, L>(&ta.significand[r][i], &ta.exponent[r][i], tb, i, j, accumulator);
      const __m256i c_non_finite = _mm256_cmpgt_epi32(_mm256_and_si256(c_bits, _mm256_set1_epi32(0x7FFFFFFF)),
                                                      _mm256_set1_epi32(0x7F7FFFFF));
      const __m256i slow =
          _mm256_or_si256(c_non_finite, _mm256_or_si256(row_non_finite[r], column_non_finite[j / kLanes]));
      if (!_mm256_testz_si256(slow, slow)) {
        alignas(32) std::uint32_t c_lane[kLanes], result[kLanes];
        _mm256_store_si256(reinterpret_cast<__m256i*>(c_lane), c_bits);
        _mm256_store_si256(reinterpret_cast<__m256i*>(result), accumulator);
        const int lanes = _mm256_movemask_ps(_mm256_castsi256_ps(slow));
        for (int lane = 0; lane < kLanes; ++lane)
          if (lanes >> lane & 1)
            result[lane] = non_finite_result(a + r * k, b + j + lane, n, depth, c_lane[lane]);
        accumulator = _mm256_load_si256(reinterpret_cast<const __m256i*>(result));
      }
      _mm256_storeu_ps(d + r * n + j, _mm256_castsi256_ps(accumulator));
    }
  }
}

template <int F, int L>
void product(int m, int n, int k, const std::uint16_t* a, const std::uint16_t* b, const float* c, float* d) {
  const std::ptrdiff_t row_a = k, row_b = n;
  for (int r = 0; r < m; r += kTile)
    for (int j = 0; j < n; j += kTile)
      for (int i = 0; i < k; i += kTile) {
        const std::ptrdiff_t corner = r * row_b + j;
        tile_product<F, L>(std::min(kTile, m - r), std::min(kTile, n - j), std::min(kTile, k - i), row_a,
                           row_b, a + r * row_a + i, b + i * row_b + j, (i == 0 ? c : d) + corner,
                           d + corner);
      }
}

}  // namespace

void tensor_core_f16(Arch arch, int m, int n, int k, const std::uint16_t* a, const std::uint16_t* b,
                     const float* c, float* d) {
  if (m < 0 || n < 0 || n % kLanes != 0 || k <= 0 || (k != kLanes && k % kTile != 0))
    throw std::invalid_argument(
        "tensor_core_f16: expected m >= 0, n a multiple of 8 and k 8 or a multiple of 16, got m=" +
        std::to_string(m) + " n=" + std::to_string(n) + " k=" + std::to_string(k));
  switch (arch) {
    case Arch::sm_70:
      return product<23, 4>(m, n, k, a, b, c, d);
    case Arch::sm_80:
      return product<24, 8>(m, n, k, a, b, c, d);
    case Arch::sm_90:
      return product<25, 16>(m, n, k, a, b, c, d);
  }
}

}  // namespace simt
