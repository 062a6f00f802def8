// When the streamed variants load their operands from shared memory: as needed, or one step ahead.
#pragma once
#include "token_values.cuh"

namespace scalar {

// A step waits for its own operands.
struct ScheduleAsNeeded {
  template <int D>
  using Stream = StreamPipeline<32, 6>;
  static constexpr int kScoreRow = kPartitionTokens;
  static constexpr bool kQueryFirst = false;
  template <int G>
  static constexpr int kGroups = 1;

  template <int G, int D, class Memory>
  static __device__ __forceinline__ void score(Memory& m, TokenStream<D, Stream<D>>& stream,
                                               const GroupQuery<G, D>& query, int tokens, float score_scale) {
    static_assert(Stream<D>::kWarpTokens == kScored, "a stage is scored at once");
    const int own = threadIdx.x / 32 * Stream<D>::kWarpTokens;
    for (int n = 0; n < stream.stages(); ++n) {
      typename GroupQuery<G, D>::Words word;
      typename GroupQuery<G, D>::Chains acc;
      typename GroupQuery<G, D>::Sums x;
      query.load(word, stream.next());
      query.multiply(acc, word);
      query.add_lanes(x, acc);
      query.store(m, x, n * Stream<D>::kTokens + own, tokens, score_scale);
    }
  }

  template <int G, int Groups, int D, class Memory>
  static __device__ __forceinline__ void add(const Memory& m, TokenStream<D, Stream<D>>& stream,
                                             GroupValues<G, Groups>& values, int tokens) {
    for (int n = 0; n < stream.stages(); ++n) {
      const unsigned char* const stage = stream.next();
      const int first = n * Stream<D>::kTokens;
      if (first + Stream<D>::kTokens <= tokens) {
#pragma unroll
        for (int i = 0; i < Stream<D>::kTokens; i += kAdded) {
          typename GroupValues<G, Groups>::Batch batch;
          values.load(batch, m, stage + i * kSlab, first + i);
          values.template add<true>(batch);
        }
      } else {
        add_last(m, values, stage, first, tokens);
      }
    }
  }

  // The tokens of a stage that is not full.
  template <int G, int Groups, class Memory>
  static __device__ __forceinline__ void add_last(const Memory& m, GroupValues<G, Groups>& values,
                                                  const unsigned char* stage, int first, int tokens) {
    for (int i = 0; first + i < tokens; i += kAdded) {
      typename GroupValues<G, Groups>::Batch batch;
      values.load(batch, m, stage + i * kSlab, first + i);
      values.template add<false>(batch, tokens - first - i);
    }
  }
};

// While a step is multiplied, the operands of the next one are loaded from shared memory. A stage has twice the tokens.
// PV has `Halves` groups of heads if a group then has more than two.
template <int Halves>
struct ScheduleOneAhead {
  template <int D>
  using Stream = StreamPipeline<64, D == 256 ? 4 : 3>;  // a smaller geometry fits into the 64 KiB of a smaller GPU
  static constexpr int kScoreRow = kPartitionTokens + (Halves > 1 ? 4 : 0);  // two heads' p come from different banks
  static constexpr bool kQueryFirst = true;  // before the page table, which takes as long
  template <int G>
  static constexpr int kGroups = G % Halves == 0 && G > 2 * Halves ? Halves : 1;

  template <int G, int D, class Memory>
  static __device__ __forceinline__ void score(Memory& m, TokenStream<D, Stream<D>>& stream,
                                               const GroupQuery<G, D>& query, int tokens, float score_scale) {
    constexpr int steps = Stream<D>::kWarpTokens / kScored;
    const int own = threadIdx.x / 32 * Stream<D>::kWarpTokens;
    typename GroupQuery<G, D>::Words word;
    const unsigned char* stage = stream.next();
    query.load(word, stage);
    for (int n = 0; n < stream.stages(); ++n) {
      typename GroupQuery<G, D>::Sums x[steps];
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        typename GroupQuery<G, D>::Chains acc;
        query.multiply(acc, word);
        // The stage after the last of K is the first of V; these words are then not used.
        if (step + 1 == steps && n + 1 < stream.stages()) stage = stream.next();
        query.load(word, stage + (step + 1) % steps * kScored * D);
        query.add_lanes(x[step], acc);
      }
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        query.store(m, x[step], n * Stream<D>::kTokens + own + step * kScored, tokens, score_scale);
      }
    }
  }

  template <int G, int Groups, int D, class Memory>
  static __device__ __forceinline__ void add(const Memory& m, TokenStream<D, Stream<D>>& stream,
                                             GroupValues<G, Groups>& values, int tokens) {
    constexpr int batches = Stream<D>::kTokens / kAdded;
    const int full = tokens / Stream<D>::kTokens;
    const unsigned char* stage = stream.next();
    typename GroupValues<G, Groups>::Batch batch[2];
    values.load(batch[0], m, stage, 0);
    for (int n = 0; n < full; ++n) {
#pragma unroll
      for (int i = 0; i < batches; ++i) {
        int first = n * Stream<D>::kTokens + (i + 1) * kAdded;
        if (i + 1 == batches && n + 1 < stream.stages()) stage = stream.next();
        if (i + 1 == batches) first %= kPartitionTokens;  // past the last token the value is not added
        values.load(batch[(i + 1) % 2], m, stage + (i + 1) % batches * kAdded * kSlab, first);
        values.template add<true>(batch[i % 2]);
      }
    }
    ScheduleAsNeeded::add_last(m, values, stage, full * Stream<D>::kTokens, tokens);
  }
};

}  // namespace scalar
