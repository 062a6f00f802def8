// The parameters of a kernel, as data that clang writes into the PTX. The kinds are those of simt_kernel.h.
#pragma once

namespace kernel_audit {

struct Parameter {
  unsigned kind;
  unsigned bytes;
  unsigned alignment;  // of a pointer's target
};

template <class T>
struct Plain {
  typedef T type;
};
template <class T>
struct Plain<const T> {
  typedef T type;
};
template <class T>
struct Plain<volatile T> {
  typedef T type;
};
template <class T>
struct Plain<const volatile T> {
  typedef T type;
};

template <class T>
struct Target {
  static constexpr unsigned alignment = alignof(T);
};
template <>
struct Target<void> {
  static constexpr unsigned alignment = 1;
};
template <class R, class... Ts>
struct Target<R(Ts...)> {
  static constexpr unsigned alignment = 1;
};

template <class T, bool IsEnum = __is_enum(T)>
struct Described {
  static constexpr Parameter value = {7, sizeof(T), 1};  // bytes
};
template <class T>
struct Described<T, true> {
  static constexpr Parameter value = Described<__underlying_type(T)>::value;
};
template <class T>
struct Described<T*, false> {
  static constexpr Parameter value = {0, sizeof(T*), Target<typename Plain<T>::type>::alignment};
};
#define KERNEL_AUDIT_INTEGER(T)                                                                            \
  template <>                                                                                              \
  struct Described<T, false> {                                                                             \
    static constexpr Parameter value = {(sizeof(T) > 4 ? 3u : 1u) + (static_cast<T>(-1) < static_cast<T>(0) ? 0u : 1u), sizeof(T), 1}; \
  };
KERNEL_AUDIT_INTEGER(char)
KERNEL_AUDIT_INTEGER(signed char)
KERNEL_AUDIT_INTEGER(unsigned char)
KERNEL_AUDIT_INTEGER(short)
KERNEL_AUDIT_INTEGER(unsigned short)
KERNEL_AUDIT_INTEGER(int)
KERNEL_AUDIT_INTEGER(unsigned)
KERNEL_AUDIT_INTEGER(long)
KERNEL_AUDIT_INTEGER(unsigned long)
KERNEL_AUDIT_INTEGER(long long)
KERNEL_AUDIT_INTEGER(unsigned long long)
KERNEL_AUDIT_INTEGER(wchar_t)
KERNEL_AUDIT_INTEGER(char16_t)
KERNEL_AUDIT_INTEGER(char32_t)
#undef KERNEL_AUDIT_INTEGER
template <>
struct Described<bool, false> {
  static constexpr Parameter value = {2, 1, 1};
};
template <>
struct Described<float, false> {
  static constexpr Parameter value = {5, 4, 1};
};
template <>
struct Described<double, false> {
  static constexpr Parameter value = {6, 8, 1};
};

template <auto Function>
struct Entry;
template <class... Ts, void (*Function)(Ts...)>
struct Entry<Function> {
  static constexpr void (*function)(Ts...) = Function;
  static __device__ constexpr Parameter parameters[] = {Described<typename Plain<Ts>::type>::value..., {}};
};

}  // namespace kernel_audit
