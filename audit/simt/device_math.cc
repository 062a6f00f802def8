// fmaxf and its kin as PTX has them: a NaN gives way to a number, and -0 lies below +0. The C library promises
// only the first, and these definitions in the program itself take its place.
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
