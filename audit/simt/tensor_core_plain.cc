// The slow and obvious form of the tensor-core model; the steps are numbered as in tensor_core.md. It
// shares nothing with tensor_core.cc, not even the table, so that the two can disagree.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tensor_core.h"

namespace simt {
namespace {

enum class Class { finite, infinite, nan };

// (-1)^negative * significand * 2^(exponent - fraction_bits): a significand in [1,2) of fraction_bits places.
struct Number {
  Class cls;
  bool negative;
  std::int64_t significand;
  int exponent;
  int fraction_bits;
};

Number decode(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int all_ones = (1 << exponent_bits) - 1;
  const int bias = all_ones / 2;
  const int field = static_cast<int>(bits >> fraction_bits) & all_ones;
  const std::int64_t fraction = bits & ((1u << fraction_bits) - 1);
  const bool negative = (bits >> (exponent_bits + fraction_bits)) & 1;
  if (field == all_ones) return {fraction ? Class::nan : Class::infinite, negative, 0, 0, fraction_bits};
  if (field == 0) return {Class::finite, negative, fraction, 1 - bias, fraction_bits};
  return {Class::finite, negative, fraction + (std::int64_t{1} << fraction_bits), field - bias,
          fraction_bits};
}

Number multiply(const Number& x, const Number& y) {
  const bool negative = x.negative != y.negative;
  const auto is_zero = [](const Number& v) { return v.cls == Class::finite && v.significand == 0; };
  Number product{Class::finite, negative, 0, 0, x.fraction_bits + y.fraction_bits};
  if (x.cls == Class::nan || y.cls == Class::nan) {
    product.cls = Class::nan;
  } else if (x.cls == Class::infinite || y.cls == Class::infinite) {
    product.cls = is_zero(x) || is_zero(y) ? Class::nan : Class::infinite;
  } else {
    product.significand = x.significand * y.significand;  // step 2
    product.exponent = x.exponent + y.exponent;
  }
  return product;
}

// sum * 2^unit to binary32, toward zero, subnormals included.
std::uint32_t round_toward_zero(std::int64_t sum, int unit) {
  if (sum == 0) return 0;
  const std::uint32_t sign = sum < 0 ? 0x80000000u : 0u;
  std::uint64_t magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  // Bring the last place to that of the result: 23 below the leading bit, or -149 where that is higher.
  int leading = 0;
  while (magnitude >> (leading + 1)) ++leading;
  const int last_place = std::max(leading + unit - 23, -149);
  for (; unit < last_place; ++unit) magnitude >>= 1;
  for (; unit > last_place; --unit) magnitude <<= 1;
  // The leading bit of a normal number is bit 23 of the magnitude: it adds the 1 that the field lacks here.
  const int field_minus_one = last_place + 149;
  if (field_minus_one > 253) return sign | 0x7F7FFFFFu;  // overflow, toward zero
  return sign | static_cast<std::uint32_t>((static_cast<std::uint64_t>(field_minus_one) << 23) + magnitude);
}

std::uint32_t one_step(const std::vector<Number>& terms, int f) {
  bool nan = false, plus_infinity = false, minus_infinity = false;
  for (const Number& t : terms) {
    nan |= t.cls == Class::nan;
    plus_infinity |= t.cls == Class::infinite && !t.negative;
    minus_infinity |= t.cls == Class::infinite && t.negative;
  }
  if (nan || (plus_infinity && minus_infinity)) return 0x7FFFFFFFu;  // step 5
  if (plus_infinity) return 0x7F800000u;
  if (minus_infinity) return 0xFF800000u;

  bool found = false;
  int e_max = 0;
  for (const Number& t : terms) {
    if (t.significand == 0) continue;
    e_max = found ? std::max(e_max, t.exponent) : t.exponent;
    found = true;
  }
  std::int64_t sum = 0;
  for (const Number& t : terms) {  // step 3; significands have at most 24 bits, so nothing leaves 64 bits
    if (t.significand == 0) continue;
    std::int64_t magnitude = t.significand << (f - t.fraction_bits);
    for (int e = t.exponent; e < e_max && magnitude != 0; ++e) magnitude /= 2;
    sum += t.negative ? -magnitude : magnitude;
  }
  return round_toward_zero(sum, e_max - f);  // step 4
}

}  // namespace

void tensor_core_f16_plain(Arch arch, int m, int n, int k, const std::uint16_t* a, const std::uint16_t* b,
                           const float* c, float* d) {
  const int f = arch == Arch::sm_70 ? 23 : arch == Arch::sm_80 ? 24 : 25;
  const int l = arch == Arch::sm_70 ? 4 : arch == Arch::sm_80 ? 8 : 16;
  std::vector<Number> terms;
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      std::uint32_t accumulator;
      std::memcpy(&accumulator, &c[row * n + column], sizeof accumulator);
      for (int first = 0; first < k; first += l) {
        terms.clear();
        terms.push_back(decode(accumulator, 8, 23));  // step 1
        for (std::int64_t i = first; i < std::min(first + l, k); ++i)
          terms.push_back(multiply(decode(a[row * k + i], 5, 10), decode(b[i * n + column], 5, 10)));
        accumulator = one_step(terms, f);
      }
      std::memcpy(&d[row * n + column], &accumulator, sizeof accumulator);
    }
  }
}

}  // namespace simt
