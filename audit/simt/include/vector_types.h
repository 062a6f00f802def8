// CUDA's built-in vector types, with CUDA's alignments.
#pragma once

#define SIMT_VECTOR_TYPES(T, name, align2, align4)                                                    \
  struct name##1 { T x; };                                                                            \
  struct alignas(align2) name##2 { T x, y; };                                                         \
  struct name##3 { T x, y, z; };                                                                      \
  struct alignas(align4) name##4 { T x, y, z, w; };                                                   \
  constexpr inline name##1 make_##name##1(T x) { return {x}; }                                        \
  constexpr inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                \
  constexpr inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                        \
  constexpr inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

SIMT_VECTOR_TYPES(signed char, char, 2, 4)
SIMT_VECTOR_TYPES(unsigned char, uchar, 2, 4)
SIMT_VECTOR_TYPES(short, short, 4, 8)
SIMT_VECTOR_TYPES(unsigned short, ushort, 4, 8)
SIMT_VECTOR_TYPES(int, int, 8, 16)
SIMT_VECTOR_TYPES(unsigned int, uint, 8, 16)
SIMT_VECTOR_TYPES(long, long, 16, 16)
SIMT_VECTOR_TYPES(unsigned long, ulong, 16, 16)
SIMT_VECTOR_TYPES(long long, longlong, 16, 16)
SIMT_VECTOR_TYPES(unsigned long long, ulonglong, 16, 16)
SIMT_VECTOR_TYPES(float, float, 8, 16)
SIMT_VECTOR_TYPES(double, double, 16, 16)

#undef SIMT_VECTOR_TYPES

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
