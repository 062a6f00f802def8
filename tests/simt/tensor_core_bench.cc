// How many products of 16 terms a second one core does, on 16x16x16 calls with operands that change.
// Usage: tensor_core_bench [milliseconds for each line]
// Prints lines of: architecture, form, millions of 16-term products a second.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tensor_core.h"

namespace {

constexpr int kElements = 16 * 16;
constexpr int kCalls = 64;  // 128 KiB of operands

using Product = void (*)(simt::Arch, int, int, int, const std::uint16_t*, const std::uint16_t*, const float*,
                         float*);

double millions_per_second(Product product, simt::Arch arch, double seconds,
                           const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b,
                           std::vector<float>& d) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double elapsed = 0, count = 0;
  while (elapsed < seconds) {
    for (int call = 0; call < kCalls; ++call) {
      float* tile = d.data() + call * kElements;
      product(arch, 16, 16, 16, a.data() + call * kElements, b.data() + call * kElements, tile, tile);
    }
    count += double(kCalls) * kElements;
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return count / elapsed * 1e-6;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) * 1e-3 : 1.0;
  std::vector<std::uint16_t> a(kCalls * kElements), b(kCalls * kElements);
  std::vector<float> d(kCalls * kElements, 1.0f);
  std::uint64_t state = 1;
  const auto finite_f16 = [&state] {  // any sign and fraction, exponent field 1..30
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint32_t bits = static_cast<std::uint32_t>(state >> 33);
    return static_cast<std::uint16_t>((bits & 0x83FF) | ((1 + (bits >> 16) % 30) << 10));
  };
  for (auto& x : a) x = finite_f16();
  for (auto& x : b) x = finite_f16();

  const std::pair<const char*, simt::Arch> archs[] = {
      {"sm_70", simt::Arch::sm_70}, {"sm_80", simt::Arch::sm_80}, {"sm_90", simt::Arch::sm_90}};
  for (const auto& [name, arch] : archs) {
    std::printf("%s fast %.1f\n", name, millions_per_second(simt::tensor_core_f16, arch, seconds, a, b, d));
    std::printf("%s plain %.1f\n", name,
                millions_per_second(simt::tensor_core_f16_plain, arch, seconds, a, b, d));
  }
}
