// What C++ leaves undefined and a GPU does not: checks that the compiler puts into the kernels (-fsanitize=..., see
// audit/compile/instrumentation.py) call these functions. The names and the layout of the data are those of UBSan.
//
// A misaligned access is a fault of the kernel: a GPU refuses it too. A shift by the width or more, a conversion to an
// integer that cannot hold the value, and an integer division by zero have a result on a GPU that this CPU does not
// compute, so the run ends as unsupported.
#include "sanitizers.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "block.h"
#include "buffers.h"
#include "failure.h"

namespace simt {
namespace {

struct SourceLine {
  const char* file;
  std::uint32_t line;
  std::uint32_t column;
};

struct TypeDescriptor {
  std::uint16_t kind;  // 0 integer, 1 float
  std::uint16_t info;  // integer: log2 of its bits, shifted by one, and whether it is signed; float: its bits
  char name[1];        // in quotes
};

bool is_signed(const TypeDescriptor& type) { return (type.info & 1) != 0; }
unsigned width(const TypeDescriptor& type) { return 1U << (type.info >> 1); }

// A file as messages name it: the compiler was started in the project's folder.
const char* plain(const char* file) { return std::strncmp(file, "./", 2) == 0 ? file + 2 : file; }

struct Where {
  char text[512];
  Where() { describe_current_thread(text, sizeof(text)); }
};

struct ShiftData {
  SourceLine line;
  const TypeDescriptor* left;
  const TypeDescriptor* right;
};

[[noreturn]] void refuse_shift(const ShiftData& data, std::uint64_t by) {
  const Where where;
  char amount[24];
  if (is_signed(*data.right)) {
    const unsigned unused = 64 - width(*data.right);
    std::snprintf(amount, sizeof(amount), "%lld", static_cast<long long>(by << unused) >> unused);
  } else {
    std::snprintf(amount, sizeof(amount), "%llu", static_cast<unsigned long long>(by));
  }
  fail(Failure::unsupported,
       "%s%s:%u: a shift of a %s by %s, which C++ leaves undefined: a GPU shifts all bits out, the CPU would not; "
       "shift by less than %u",
       where.text, plain(data.line.file), data.line.line, data.left->name, amount, width(*data.left));
}

struct CastData {
  SourceLine line;
  const TypeDescriptor* from;
  const TypeDescriptor* to;
};

[[noreturn]] void refuse_cast(const CastData& data, std::uint64_t bits) {
  const Where where;
  double value = 0;
  if (data.from->info == 32) {
    float narrow;
    std::memcpy(&narrow, &bits, sizeof(narrow));
    value = static_cast<double>(narrow);
  } else {
    std::memcpy(&value, &bits, sizeof(value));
  }
  fail(Failure::unsupported,
       "%s%s:%u: a conversion of %g (%s) to %s, which C++ leaves undefined: a GPU gives the nearest value of the type, "
       "the CPU would not; clamp the value first",
       where.text, plain(data.line.file), data.line.line, value, data.from->name, data.to->name);
}

struct DivisionData {
  SourceLine line;
  const TypeDescriptor* type;
};

[[noreturn]] void refuse_division(const DivisionData& data) {
  const Where where;
  fail(Failure::unsupported,
       "%s%s:%u: a division of a %s by zero, or one that overflows, which C++ leaves undefined: a GPU gives a number, the "
       "CPU would not; guard the divisor",
       where.text, plain(data.line.file), data.line.line, data.type->name);
}

#ifndef SIMT_SANITIZER_ADDRESS  // where UBSan itself reports it
struct MismatchData {
  SourceLine line;
  const TypeDescriptor* type;
  unsigned char log_alignment;
  unsigned char kind;
};

[[noreturn]] void fail_misaligned(const MismatchData& data, std::uint64_t address) {
  constexpr const char* kinds[] = {"load", "store", "reference", "member access", "member call"};
  const Where where;
  const std::uint64_t alignment = 1ULL << data.log_alignment;
  fail(Failure::memory, "%s%s:%u: misaligned %s: a %s needs a multiple of %llu, but the address is %llu bytes past one",
       where.text, plain(data.line.file), data.line.line, data.kind < 5 ? kinds[data.kind] : "access",
       data.type->name, static_cast<unsigned long long>(alignment), static_cast<unsigned long long>(address % alignment));
}
#endif

}  // namespace
}  // namespace simt

extern "C" {

void __ubsan_handle_shift_out_of_bounds(const simt::ShiftData* data, std::uint64_t, std::uint64_t right) {
  simt::refuse_shift(*data, right);
}
void __ubsan_handle_divrem_overflow(const simt::DivisionData* data, std::uint64_t, std::uint64_t) {
  simt::refuse_division(*data);
}
void __ubsan_handle_float_cast_overflow(const simt::CastData* data, std::uint64_t from) {
  simt::refuse_cast(*data, from);
}
#ifndef SIMT_SANITIZER_ADDRESS
void __ubsan_handle_type_mismatch_v1(const simt::MismatchData* data, std::uint64_t pointer) {
  simt::fail_misaligned(*data, pointer);
}
#endif

}  // extern "C"
