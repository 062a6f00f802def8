// K and then V of a partition, copied into shared memory through a pipeline of stages. Each warp has a pipeline of its
// own: only its lanes load and read it, so that no barrier of the block is needed.
//
// For each warp, stage n of K holds a quarter of the tokens of stage n of V; of those, the warp has the 64 dimensions
// that it sums in PV.
#pragma once
#include <audit_copy.h>
#include <audit_keep.h>

#include "../geometry.cuh"

namespace scalar {

constexpr int kGroupThreads = 128;
constexpr int kGroupWarps = kGroupThreads / 32;
constexpr int kSlab = 64;  // dimensions of a warp in PV
constexpr int kVector = 16;
constexpr int kRun = 16;  // tokens on one page: page sizes and partitions are multiples of it
constexpr int kRuns = kPartitionTokens / kRun;

// A pipeline of Stages stages, each of Tokens tokens.
template <int Tokens, int Stages>
struct StreamPipeline {
  static constexpr int kStages = Stages;
  static constexpr int kTokens = Tokens;
  static constexpr int kWarpTokens = Tokens / kGroupWarps;  // of K
  static constexpr int kBytes = Tokens * kSlab;             // of a warp; K has no more: D <= 256
};

template <int G, int D, class Schedule>
struct __align__(16) GroupMemory {
  using Pipeline = typename Schedule::template Stream<D>;
  static constexpr int kScoreRow = Schedule::kScoreRow;  // at least kPartitionTokens
  float score[G][kScoreRow];                             // then the weights p, in place
  unsigned char stages[kGroupWarps][Pipeline::kStages][Pipeline::kBytes];
  long long k_offset[kRuns];  // bytes from the storage's base to the first token of a run
  long long v_offset[kRuns];
  float maximum[G][kWarps];
  float sum[G][kWarps];
  __half q[G][D];
};

// The offsets of K and V for the runs that have a token < length. No other table entry is read.
template <class Memory>
__device__ __forceinline__ void locate_runs(Memory& m, const paged::Inputs& in, const Partition& partition) {
  static_assert(kGroupThreads == 2 * kRuns, "one thread a run and storage");
  const int run = threadIdx.x % kRuns;
  const bool keys = threadIdx.x < kRuns;
  const int token = partition.first + run * kRun;
  long long offset = 0;
  if (run * kRun < partition.tokens) {
    const long long physical_page = in.table[token / in.page];
    offset = physical_page * (keys ? in.k.page_stride : in.v.page_stride) +
             token % in.page * (keys ? in.k.token_stride : in.v.token_stride);
  }
  (keys ? m.k_offset : m.v_offset)[run] = offset;
}

// One vector through registers, by loads of `bytes` bytes, 8 or 1.
__device__ __forceinline__ void copy_narrow(unsigned char* to, const unsigned char* from, int bytes) {
  if (bytes == 8) {
    const uint2 low = reinterpret_cast<const uint2*>(from)[0];
    const uint2 high = reinterpret_cast<const uint2*>(from)[1];
    *reinterpret_cast<uint4*>(to) = make_uint4(low.x, low.y, high.x, high.y);
  } else {
#pragma unroll 1
    for (int i = 0; i < kVector; ++i) to[i] = from[i];
  }
}

// The position of a token's vector x in a stage of K: 64 bytes of two neighbouring tokens fill all banks.
template <int D>
__device__ __forceinline__ int swizzled(int token, int x) {
  return D >= 128 ? x ^ 4 * (token & 1) : x;
}

template <int D, class Pipeline>
class TokenStream {
  static constexpr int kStages = Pipeline::kStages;
  static constexpr int kStageTokens = Pipeline::kTokens;
  static constexpr int kStageBytes = Pipeline::kBytes;
  static constexpr int kWarpTokens = Pipeline::kWarpTokens;

 public:
  template <class Memory>
  __device__ __forceinline__ TokenStream(Memory& m, const paged::Inputs& in, int tokens)
      : bytes_(paged::widest_load(in)), tokens_(tokens), stages_((tokens + kStageTokens - 1) / kStageTokens) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    plain_ = bytes_ == kVector ? tokens / kStageTokens : 0;
    pipeline_ = &m.stages[warp][0][0];
    k_own_ = lane / kVectors;
    k_to_ = k_own_ * D + swizzled<D>(k_own_, lane % kVectors) * kVector;
    k_ = in.k.bytes + (warp * kWarpTokens % kRun + k_own_) * in.k.token_stride + lane % kVectors * kVector;
    k_step_ = kAtOnce * in.k.token_stride;
    k_runs_ = m.k_offset;
    k_first_run_ = warp * kWarpTokens / kRun;
    v_ = in.v.bytes + lane / kSlabVectors * in.v.token_stride + warp * kSlab + lane % kSlabVectors * kVector;
    v_step_ = kSlabAtOnce * in.v.token_stride;
    v_runs_ = m.v_offset;
    audit::keep(plain_);
    audit::keep(k_to_);
    audit::keep(k_);
    audit::keep(k_step_);
    audit::keep(v_);
    audit::keep(v_step_);
#pragma unroll 1
    for (int i = 0; i + 1 < kStages; ++i) load_next();
  }

  // How many stages K has, and V.
  __device__ __forceinline__ int stages() const { return stages_; }

  // The next stage, K before V. It releases the stage before.
  __device__ __forceinline__ const unsigned char* next() {
    copies_.template wait<kStages - 2>();
    __syncwarp();
    load_next();
    const unsigned char* const stage = pipeline_ + current_;
    current_ = current_ + kStageBytes < kStages * kStageBytes ? current_ + kStageBytes : 0;
    return stage;
  }

 private:
  static constexpr int kVectors = D / kVector;
  static constexpr int kAtOnce = 32 / kVectors;  // tokens that a warp copies at once, one vector a lane
  static constexpr int kSlabVectors = kSlab / kVector;
  static constexpr int kSlabAtOnce = 32 / kSlabVectors;
  static constexpr int kStageRuns = kStageTokens / kRun;
  static_assert(kAtOnce % 2 == 0 && kWarpTokens % kAtOnce == 0, "a lane has the same vector of every token");

  __device__ __forceinline__ void load_next() {
    unsigned char* const to = pipeline_ + free_;
    if (loading_ < stages_) {
      load_keys(loading_, to + k_to_);
    } else if (loading_ < 2 * stages_ && threadIdx.x / 32 < D / kSlab) {
      load_values(loading_ - stages_, to + threadIdx.x % 32 * kVector);
    }
    copies_.commit();
    ++loading_;
    free_ = free_ + kStageBytes < kStages * kStageBytes ? free_ + kStageBytes : 0;
  }

  // A stage below plain_ is copied without a thought for alignment and for the last token.
  __device__ __forceinline__ void load_keys(int stage, unsigned char* to) {
    const unsigned char* from = k_ + k_runs_[stage * kStageRuns + k_first_run_];
    if (stage < plain_) {
#pragma unroll
      for (int i = 0; i < kWarpTokens; i += kAtOnce, from += k_step_) copies_.copy16(to + i * D, from);
    } else {
      const int token = stage * kStageTokens + threadIdx.x / 32 * kWarpTokens + k_own_;
#pragma unroll 1
      for (int i = 0; i < kWarpTokens; i += kAtOnce, from += k_step_) copy(to + i * D, from, token + i);
    }
  }

  __device__ __forceinline__ void load_values(int stage, unsigned char* to) {
    const int token = stage * kStageTokens + threadIdx.x % 32 / kSlabVectors;
    const long long* const runs = v_runs_ + stage * kStageRuns;
    if (stage < plain_) {
#pragma unroll
      for (int run = 0; run < kStageRuns; ++run) {
        const unsigned char* from = v_ + runs[run];
#pragma unroll
        for (int i = run * kRun; i < (run + 1) * kRun; i += kSlabAtOnce, from += v_step_) {
          copies_.copy16(to + i * kSlab, from);
        }
      }
    } else {
      const unsigned char* from = v_;
#pragma unroll 1
      for (int i = 0; i < kStageTokens; i += kSlabAtOnce) {
        if (i % kRun == 0) from = v_ + runs[i / kRun];
        copy(to + i * kSlab, from, token + i);
        from += v_step_;
      }
    }
  }

  // A token past the last becomes +0 and is not read.
  __device__ __forceinline__ void copy(unsigned char* to, const unsigned char* from, int token) {
    if (bytes_ == kVector || token >= tokens_) {
      copies_.copy16(to, from, token < tokens_);
    } else {
      copy_narrow(to, from, bytes_);
    }
  }

  audit::CopyQueue copies_;
  int bytes_;
  int tokens_;
  int stages_;
  int plain_;
  int loading_ = 0;  // the next stage to load
  int free_ = 0;     // its offset, in bytes
  int current_ = 0;
  unsigned char* pipeline_;
  int k_own_;
  int k_first_run_;
  int k_to_;
  const unsigned char* k_;  // the lane's vector of a stage's first token, without the offset of the token's run
  const unsigned char* v_;
  long long k_step_;
  long long v_step_;
  const long long* k_runs_;
  const long long* v_runs_;
};

}  // namespace scalar
