// Runs the exp of a kernel over every binary32 from -0 to -80, or over every STEP-th of them.
//
// CONTRACT_EXP names a file with the text of contract_exp, which exp_sweep.py cuts from a kernel's source.
// Prints one JSON object. Usage: exp_sweep STEP
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define __device__
#define __forceinline__ inline
static inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
static inline uint32_t __float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }
static inline float __uint_as_float(uint32_t x) { return std::bit_cast<float>(x); }

#include CONTRACT_EXP

namespace {

constexpr uint32_t kFirst = 0x80000000u;  // -0
constexpr uint32_t kLast = 0xC2A00000u;   // -80

// FNV-1a-64 over the result words, one word a step. It is a chain, so one thread computes all of it.
uint64_t hash_results(uint32_t step) {
  uint64_t hash = 1469598103934665603u;
  for (uint64_t word = kFirst; word <= kLast; word += step) {
    hash ^= __float_as_uint(contract_exp(__uint_as_float(static_cast<uint32_t>(word))));
    hash *= 1099511628211u;
  }
  return hash;
}

struct Worst {
  double ulp = -1.0;
  uint32_t word = 0;
};

// Error in units of the last place of the exact result's binade. The reference is the library's double exp:
// its error, under 1 ulp of a double, is at most 2^-28 ulp of a float.
Worst worst_error(uint64_t first, uint64_t last, uint32_t step) {
  Worst worst;
  for (uint64_t word = first; word <= last; word += step) {
    const float x = __uint_as_float(static_cast<uint32_t>(word));
    const double exact = std::exp(static_cast<double>(x));
    // A power of two with the exponent of `exact`; every result is a normal float.
    const double binade = std::bit_cast<double>(std::bit_cast<uint64_t>(exact) & 0x7FF0000000000000u);
    const double ulp = std::fabs(static_cast<double>(contract_exp(x)) - exact) / binade * 0x1p23;
    if (!(ulp <= worst.ulp)) worst = {ulp, static_cast<uint32_t>(word)};  // a NaN counts as the worst
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const uint32_t step = static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10));
  if (step == 0) return 2;
  const uint64_t count = (kLast - kFirst) / step + 1;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned chunks = 64 * cores;

  uint64_t hash = 0;
  std::thread hashing([&] { hash = hash_results(step); });
  std::vector<Worst> worst(chunks);
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < cores; ++worker) {
    workers.emplace_back([&, worker] {
      for (unsigned chunk = worker; chunk < chunks; chunk += cores) {
        const uint64_t begin = count * chunk / chunks;
        const uint64_t end = count * (chunk + 1) / chunks;
        if (begin < end) worst[chunk] = worst_error(kFirst + begin * step, kFirst + (end - 1) * step, step);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  hashing.join();

  Worst overall;
  for (const Worst& one : worst) {
    if (!(one.ulp <= overall.ulp)) overall = one;
  }
  std::printf("{\"count\": %llu, \"fnv1a64\": \"%016llx\", \"worst_ulp\": \"%a\", \"worst_at\": \"%a\", ",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(hash), overall.ulp,
              static_cast<double>(__uint_as_float(overall.word)));
  std::printf("\"at_minus_zero\": \"%a\", \"at_plus_zero\": \"%a\", \"at_minus_80\": \"%a\"}\n",
              static_cast<double>(contract_exp(-0.0f)), static_cast<double>(contract_exp(0.0f)),
              static_cast<double>(contract_exp(-80.0f)));
  return 0;
}
