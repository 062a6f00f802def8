// Cooperative groups: the block, tiles of 1 to 32 threads, coalesced threads, and the grid without its barrier.
//
// Every collective is one of simt_sync.h on the lanes of the group. It waits for exactly these lanes, and messages name
// the calling line. Only sync() orders memory among them.
#pragma once

#include <type_traits>

#include "cuda_runtime.h"
#include "../failure.h"

namespace cooperative_groups {

namespace details {

inline unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned block_thread_rank() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

// For values of at most 32 bytes, as in CUDA. A value longer than a word takes several shuffles.
template <typename T>
inline T shuffled(simt::Shuffle kind, unsigned mask, const T& value, unsigned argument, int width, simt::Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 32,
                "a shuffle of a group moves values of at most 32 bytes that are trivially copyable");
  if constexpr (sizeof(T) <= 8) {
    return simt::shuffled(kind, mask, value, argument, width, site);
  } else {
    T result;
    for (unsigned at = 0; at < sizeof(T); at += 8) {
      const unsigned bytes = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
      unsigned long long word = 0;
      __builtin_memcpy(&word, reinterpret_cast<const char*>(&value) + at, bytes);
      word = simt::shuffled(kind, mask, word, argument, width, site);
      __builtin_memcpy(reinterpret_cast<char*>(&result) + at, &word, bytes);
    }
    return result;
  }
}

inline void require_divisible(unsigned threads, unsigned size, simt::Site site) {
  if (size == 0 || size > 32 || (size & (size - 1)) != 0)
    simt::fail(simt::Failure::collective, "%s:%d: tiled_partition into tiles of %u threads; the CPU supports 1, 2, 4, "
               "8, 16 or 32", site.file, site.line, size);
  if (threads % size != 0)
    simt::fail(simt::Failure::collective, "%s:%d: tiled_partition of %u threads into tiles of %u; expected a divisor "
               "of the number of threads", site.file, site.line, threads, size);
}

// The lanes of the calling thread's tile.
inline unsigned tile_mask(unsigned size) {
  const unsigned first = block_thread_rank() % 32 / size * size;
  return (size == 32 ? simt::kFullMask : (1U << size) - 1) << first;
}

}  // namespace details

// The base class of all groups, for functions that accept any.
class thread_group {
 public:
  unsigned long long size() const { return mask_ == 0 ? details::block_threads() : __popc(mask_); }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    const unsigned rank = details::block_thread_rank();
    return mask_ == 0 ? rank : __popc(mask_ & ((1U << rank % 32) - 1));
  }
  void sync(SIMT_HERE) const {
    if (mask_ == 0)
      __syncthreads(simt_file, simt_line);
    else
      __syncwarp(mask_, simt_file, simt_line);
  }

 protected:
  explicit thread_group(unsigned mask) : mask_(mask) {}
  unsigned mask_;  // the lanes of the warp; 0 is the whole block

  friend thread_group tiled_partition(const thread_group& parent, unsigned size, const char*, int);
};

class thread_block : public thread_group {
 public:
  static void sync(SIMT_HERE) { __syncthreads(simt_file, simt_line); }
  static unsigned size() { return details::block_threads(); }
  static unsigned num_threads() { return details::block_threads(); }
  static unsigned thread_rank() { return details::block_thread_rank(); }
  static dim3 group_index() { return dim3(blockIdx); }
  static dim3 thread_index() { return dim3(threadIdx); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }

  SIMT_UNSUPPORTED("thread_block::barrier_arrive()") simt::Unsupported barrier_arrive() const;
  template <typename Token> SIMT_UNSUPPORTED("thread_block::barrier_wait()") void barrier_wait(Token&&) const;

 private:
  thread_block() : thread_group(0) {}
  friend thread_block this_thread_block();
};

inline thread_block this_thread_block() { return {}; }

// Consecutive lanes of a warp that start at a multiple of their number.
template <unsigned Size, typename Parent = void>
class thread_block_tile;

template <unsigned Size>
class thread_block_tile<Size, void> : public thread_group {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "thread_block_tile: the CPU supports 1, 2, 4, 8, 16 or 32 threads");

 public:
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return details::block_thread_rank() % Size; }
  unsigned meta_group_rank() const { return meta_group_rank_; }
  unsigned meta_group_size() const { return meta_group_size_; }

  void sync(SIMT_HERE) const { __syncwarp(mask_, simt_file, simt_line); }

  template <typename T>
  T shfl(T value, int rank, SIMT_HERE) const {
    return moved(simt::Shuffle::index, value, static_cast<unsigned>(rank), {simt_file, simt_line});
  }
  template <typename T>
  T shfl_up(T value, unsigned delta, SIMT_HERE) const {
    return moved(simt::Shuffle::up, value, delta, {simt_file, simt_line});
  }
  template <typename T>
  T shfl_down(T value, unsigned delta, SIMT_HERE) const {
    return moved(simt::Shuffle::down, value, delta, {simt_file, simt_line});
  }
  template <typename T>
  T shfl_xor(T value, unsigned lane_mask, SIMT_HERE) const {
    return moved(simt::Shuffle::exchange, value, lane_mask, {simt_file, simt_line});
  }

  int any(int predicate, SIMT_HERE) const { return __any_sync(mask_, predicate, simt_file, simt_line); }
  int all(int predicate, SIMT_HERE) const { return __all_sync(mask_, predicate, simt_file, simt_line); }
  // Bit i stands for the tile's thread i, here and below.
  unsigned ballot(int predicate, SIMT_HERE) const {
    return __ballot_sync(mask_, predicate, simt_file, simt_line) >> first();
  }
  template <typename T>
  unsigned match_any(T value, SIMT_HERE) const {
    return __match_any_sync(mask_, value, simt_file, simt_line) >> first();
  }
  template <typename T>
  unsigned match_all(T value, int& all_equal, SIMT_HERE) const {
    return __match_all_sync(mask_, value, &all_equal, simt_file, simt_line) >> first();
  }

 protected:
  thread_block_tile(unsigned rank, unsigned groups)
      : thread_group(details::tile_mask(Size)), meta_group_rank_(rank), meta_group_size_(groups) {}

 private:
  template <typename T>
  T moved(simt::Shuffle kind, const T& value, unsigned argument, simt::Site site) const {
    return details::shuffled(kind, mask_, value, argument, static_cast<int>(Size), site);
  }
  unsigned first() const { return static_cast<unsigned>(__builtin_ctz(mask_)); }

  unsigned meta_group_rank_, meta_group_size_;

  friend thread_block_tile<1, void> this_thread();
};

template <unsigned Size, typename Parent>
class thread_block_tile : public thread_block_tile<Size, void> {
 public:
  thread_block_tile(const Parent& parent, SIMT_HERE)
      : thread_block_tile<Size, void>(parent.thread_rank() / Size, parent.size() / Size) {
    details::require_divisible(parent.size(), Size, {simt_file, simt_line});
  }
};

namespace details {

template <typename Group> constexpr bool is_divisible = std::is_same_v<Group, thread_block>;
template <unsigned Size, typename Parent> constexpr bool is_divisible<thread_block_tile<Size, Parent>> = true;

}  // namespace details

template <unsigned Size, typename Parent>
inline std::enable_if_t<(Size <= 32), thread_block_tile<Size, Parent>> tiled_partition(const Parent& parent,
                                                                                       SIMT_HERE) {
  static_assert(details::is_divisible<Parent>, "tiled_partition: only a block or a tile can be partitioned");
  return {parent, simt_file, simt_line};
}
template <unsigned Size, typename Parent>
SIMT_UNSUPPORTED("tiled_partition into tiles of more than 32 threads")
std::enable_if_t<(Size > 32), simt::Unsupported> tiled_partition(const Parent& parent);

inline thread_group tiled_partition(const thread_group& parent, unsigned size, SIMT_HERE) {
  const unsigned threads = static_cast<unsigned>(parent.size());
  details::require_divisible(threads, size, {simt_file, simt_line});
  if (parent.mask_ != 0 && ((threads & (threads - 1)) != 0 || parent.mask_ != details::tile_mask(threads)))
    simt::fail(simt::Failure::collective, "%s:%d: tiled_partition of coalesced threads is not supported on the CPU",
               simt_file, simt_line);
  return thread_group(details::tile_mask(size));
}

inline thread_block_tile<1, void> this_thread() { return {0, 1}; }

// The lanes that are at one call together, ranked from the lowest. On a GPU the scheduler decides which these are; here
// they are all lanes that can reach the call before any waits for another.
class coalesced_group : public thread_group {
 public:
  unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return static_cast<unsigned>(thread_group::thread_rank()); }
  unsigned meta_group_rank() const { return 0; }
  unsigned meta_group_size() const { return 1; }

  void sync(SIMT_HERE) const { __syncwarp(mask_, simt_file, simt_line); }

  template <typename T>
  T shfl(T value, int rank, SIMT_HERE) const {
    const unsigned wanted = size() == 32 ? static_cast<unsigned>(rank) % 32 : static_cast<unsigned>(rank);
    return from(value, wanted, {simt_file, simt_line});
  }
  template <typename T>
  T shfl_up(T value, unsigned delta, SIMT_HERE) const {
    const unsigned rank = thread_rank();
    return from(value, delta <= rank ? rank - delta : rank, {simt_file, simt_line});
  }
  template <typename T>
  T shfl_down(T value, unsigned delta, SIMT_HERE) const {
    const unsigned rank = thread_rank();
    return from(value, delta < size() - rank ? rank + delta : rank, {simt_file, simt_line});
  }

  int any(int predicate, SIMT_HERE) const { return __any_sync(mask_, predicate, simt_file, simt_line); }
  int all(int predicate, SIMT_HERE) const { return __all_sync(mask_, predicate, simt_file, simt_line); }
  unsigned ballot(int predicate, SIMT_HERE) const {
    return packed(__ballot_sync(mask_, predicate, simt_file, simt_line));
  }
  template <typename T>
  unsigned match_any(T value, SIMT_HERE) const {
    return packed(__match_any_sync(mask_, value, simt_file, simt_line));
  }
  template <typename T>
  unsigned match_all(T value, int& all_equal, SIMT_HERE) const {
    return packed(__match_all_sync(mask_, value, &all_equal, simt_file, simt_line));
  }

 private:
  explicit coalesced_group(unsigned mask) : thread_group(mask) {}

  // CUDA leaves a rank that the group lacks undefined. Here it reads a lane outside the group, which gives poison.
  template <typename T>
  T from(const T& value, unsigned rank, simt::Site site) const {
    unsigned lanes = mask_;
    if (rank >= size()) lanes = ~mask_;
    for (; rank < size() && rank > 0; --rank) lanes &= lanes - 1;
    return details::shuffled(simt::Shuffle::index, mask_, value, static_cast<unsigned>(__builtin_ctz(lanes)), 32,
                             site);
  }
  unsigned packed(unsigned lanes) const {
    unsigned ranks = 0, rank = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1) ranks |= (lanes >> __builtin_ctz(rest) & 1U) << rank++;
    return ranks;
  }

  friend coalesced_group coalesced_threads(const char*, int);
};

inline coalesced_group coalesced_threads(SIMT_HERE) {
  return coalesced_group(simt::active_mask({simt_file, simt_line}, true));
}

template <unsigned Size>
SIMT_UNSUPPORTED("tiled_partition of coalesced threads") simt::Unsupported tiled_partition(const coalesced_group&);
SIMT_UNSUPPORTED("tiled_partition of coalesced threads")
simt::Unsupported tiled_partition(const coalesced_group&, unsigned);

// The position of a thread in the grid. Blocks run in turn here, so none can wait for another.
class grid_group {
 public:
  static unsigned long long num_blocks() { return 1ULL * gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() {
    return (1ULL * blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static unsigned long long size() { return num_blocks() * details::block_threads(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long thread_rank() {
    return block_rank() * details::block_threads() + details::block_thread_rank();
  }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 dim_threads() {
    return dim3(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z);
  }
  static dim3 block_index() { return dim3(blockIdx); }
  static dim3 thread_index() {
    return dim3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                blockIdx.z * blockDim.z + threadIdx.z);
  }

  SIMT_UNSUPPORTED("grid_group::sync(), a barrier of all blocks,") void sync() const;
  SIMT_UNSUPPORTED("grid_group::is_valid(), a cooperative launch,") bool is_valid() const;
  SIMT_UNSUPPORTED("grid_group::barrier_arrive()") simt::Unsupported barrier_arrive() const;
};

inline grid_group this_grid() { return {}; }

template <typename Group>
inline void sync(const Group& group, SIMT_HERE) {
  group.sync(simt_file, simt_line);
}
SIMT_UNSUPPORTED("sync(grid_group), a barrier of all blocks,") void sync(const grid_group&);
template <typename Group>
inline auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <typename Group>
inline auto group_size(const Group& group) {
  return group.num_threads();
}

struct SIMT_UNSUPPORTED("cluster_group") cluster_group;
struct SIMT_UNSUPPORTED("multi_grid_group") multi_grid_group;
SIMT_UNSUPPORTED("this_cluster(), a cluster of blocks,") simt::Unsupported this_cluster();
SIMT_UNSUPPORTED("this_multi_grid()") simt::Unsupported this_multi_grid();
template <unsigned Threads = 1024>
struct SIMT_UNSUPPORTED("block_tile_memory, for tiles of more than 32 threads,") block_tile_memory;
template <typename Group, typename Label>
SIMT_UNSUPPORTED("labeled_partition()") simt::Unsupported labeled_partition(const Group&, Label);
template <typename Group>
SIMT_UNSUPPORTED("binary_partition()") simt::Unsupported binary_partition(const Group&, bool);
template <typename... T>
SIMT_UNSUPPORTED("invoke_one()") simt::Unsupported invoke_one(T&&...);
template <typename... T>
SIMT_UNSUPPORTED("invoke_one_broadcast()") simt::Unsupported invoke_one_broadcast(T&&...);

}  // namespace cooperative_groups
