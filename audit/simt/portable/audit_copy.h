// cp.async as an object: copies of 16 bytes from global to shared memory, complete after a wait.
//
// One header for nvcc, NVRTC (the instructions themselves) and a CPU. The CPU copies at the wait, as late as a GPU may,
// and fills the destination with NaN at the issue. So a missing wait shows in the bytes, and ThreadSanitizer reports a
// race for a reader that is late with the old bytes or early for the new ones. A GPU older than sm_80 lacks the
// instruction and copies at once.
//
//   CopyQueue copies;           one for each thread, which waits for its own copies only
//   copies.copy16(to, from);    both aligned to 16 bytes
//   copies.copy16(to, from, read);  read = false: zeros, and `from` is not read
//   copies.commit();            makes a group of the copies since the last commit; it may be empty
//   copies.wait<N>();           waits until all groups of this thread but the N latest are complete
#pragma once

#ifdef __CUDACC__

namespace audit {

class CopyQueue {
 public:
  __device__ __forceinline__ void copy16(void* to, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared(to)), "l"(from) : "memory");
#endif
  }

  __device__ __forceinline__ void copy16(void* to, const void* from, bool read) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    *static_cast<uint4*>(to) = read ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#else
    const unsigned bytes = read ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared(to)), "l"(from), "r"(bytes) : "memory");
#endif
  }

  __device__ __forceinline__ void commit() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }

  template <int N>
  __device__ __forceinline__ void wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
  }

 private:
  __device__ __forceinline__ static unsigned shared(void* to) {
    return static_cast<unsigned>(__cvta_generic_to_shared(to));
  }
};

}  // namespace audit

#else

#include <cstddef>
#include <cstring>
#include <deque>
#include <vector>

namespace audit {

class CopyQueue {
 public:
  void copy16(void* to, const void* from) { copy16(to, from, true); }

  void copy16(void* to, const void* from, bool read) {
    std::memset(to, kPoison, kBytes);
    open_.push_back({to, read ? from : nullptr});
  }

  void commit() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }

  template <int N>
  void wait() {
    static_assert(N >= 0, "a number of groups");
    while (groups_.size() > static_cast<std::size_t>(N)) {
      for (const Copy& copy : groups_.front()) arrive(copy);
      groups_.pop_front();
    }
  }

 private:
  static constexpr std::size_t kBytes = 16;
  static constexpr int kPoison = 0x7F;  // NaN as e4m3, f16 and f32

  struct Copy {
    void* to;
    const void* from;
  };

  static void arrive(const Copy& copy) {
    if (copy.from != nullptr)
      std::memcpy(copy.to, copy.from, kBytes);
    else
      std::memset(copy.to, 0, kBytes);
  }

  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> groups_;
};

}  // namespace audit

#endif
