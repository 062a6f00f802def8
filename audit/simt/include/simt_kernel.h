// The table of a program's kernels, and their calls with launch arguments from data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace simt {

enum class ArgumentKind : unsigned char { pointer, i32, u32, i64, u64, f32, f64, bytes, word };  // bytes: a class; word: any, by size

struct Parameter {
  ArgumentKind kind;
  unsigned bytes;      // of the parameter itself
  unsigned alignment;  // of a pointer's target type, otherwise 1
};

struct Kernel {
  const char* name;
  unsigned parameter_count;
  const Parameter* parameters;
  // One word for each parameter: the value in its low bytes, or of a class the address of its bytes.
  void (*call)(const std::uint64_t* words);
};

// A variable of the source that a launch fills.
struct Variable {
  const char* name;
  void* address;
  unsigned long bytes;
};

template <typename T>
Variable variable_named(const char* name, T& variable) {
  return {name, const_cast<void*>(static_cast<const volatile void*>(&variable)), sizeof(T)};
}

// The architecture that the program was built for.
struct Target {
  const char* arch;
  unsigned shared_limit;  // the most shared memory that a block may have, in bytes
  bool has_short_addresses = false;  // those of shared memory fit into 32 bits, as in PTX
};

// The build generates these for each program.
extern const Kernel kernels[];
extern const unsigned kernel_count;
extern const Variable variables[];
extern const unsigned variable_count;
extern const Target target;

template <typename T>
constexpr Parameter describe_parameter() {
  if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_pointer_t<T>;
    if constexpr (std::is_void_v<Pointee> || std::is_function_v<Pointee>)
      return {ArgumentKind::pointer, sizeof(T), 1};
    else
      return {ArgumentKind::pointer, sizeof(T), alignof(Pointee)};
  } else if constexpr (std::is_enum_v<T>) {
    return describe_parameter<std::underlying_type_t<T>>();
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (sizeof(T) <= 4)
      return {std::is_signed_v<T> ? ArgumentKind::i32 : ArgumentKind::u32, sizeof(T), 1};
    else
      return {std::is_signed_v<T> ? ArgumentKind::i64 : ArgumentKind::u64, sizeof(T), 1};
  } else if constexpr (std::is_same_v<T, float>) {
    return {ArgumentKind::f32, sizeof(T), 1};
  } else if constexpr (std::is_same_v<T, double>) {
    return {ArgumentKind::f64, sizeof(T), 1};
  } else {
    return {ArgumentKind::bytes, sizeof(T), 1};
  }
}

template <typename T>
T parameter_from_word(std::uint64_t word) {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel parameter must be copyable byte for byte");
  alignas(T) unsigned char value[sizeof(T)];
  if constexpr (describe_parameter<T>().kind == ArgumentKind::bytes)
    std::memcpy(value, reinterpret_cast<const void*>(word), sizeof(T));
  else
    std::memcpy(value, &word, sizeof(T));
  return *std::launder(reinterpret_cast<T*>(value));
}

template <auto Function>
struct KernelOf;

template <typename... Ts, void (*Function)(Ts...)>
struct KernelOf<Function> {
  static constexpr Parameter parameters[sizeof...(Ts) + 1] = {describe_parameter<std::remove_cv_t<Ts>>()..., {}};

  template <std::size_t... I>
  static void call_with(const std::uint64_t* words, std::index_sequence<I...>) {
    Function(parameter_from_word<std::remove_cv_t<Ts>>(words[I])...);
  }
  static void call(const std::uint64_t* words) { call_with(words, std::index_sequence_for<Ts...>{}); }

  static constexpr Kernel named(const char* name) { return {name, sizeof...(Ts), parameters, call}; }
};

}  // namespace simt
