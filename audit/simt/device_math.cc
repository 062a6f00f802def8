// fmaxf, fminf, fmax and fmin as PTX defines them: a number wins over a NaN, and -0 is less than +0. The C library
// promises only the first. These definitions in the program replace the library's.
namespace {

template <typename T>
T largest(T a, T b) {
  if (a != a) return b;
  if (a == b) return __builtin_signbit(a) ? b : a;
  return a > b || b != b ? a : b;
}

template <typename T>
T smallest(T a, T b) {
  if (a != a) return b;
  if (a == b) return __builtin_signbit(a) ? a : b;
  return a < b || b != b ? a : b;
}

}  // namespace

extern "C" {
float fmaxf(float a, float b) noexcept { return largest(a, b); }
float fminf(float a, float b) noexcept { return smallest(a, b); }
double fmax(double a, double b) noexcept { return largest(a, b); }
double fmin(double a, double b) noexcept { return smallest(a, b); }
}
