// The page policies: where token i of the partition lies. Callers ask only for tokens of the partition, so no table
// entry past that of the last visible token is read.
#pragma once
#include "../geometry.cuh"

namespace scalar {

struct TokenAddress {
  int physical_page;
  int position;
};

// Divides and reads the table for every token.
struct PagesByTable {
  const int* table;
  int page;
  int first;  // the partition's first token

  __device__ __forceinline__ TokenAddress operator()(int i) const {
    const int token = first + i;
    return {table[token / page], token % page};
  }
};

// The physical page of each token of a partition, for partitions on more than two pages. 4,096 bytes.
struct PageMap {
  int physical_page[kPartitionTokens];
};

// Two page numbers, where the partition's tokens lie on at most two pages; the map elsewhere. Two suffice wherever
// page >= 1008: with a third page, all of the second one lies between at least 16 tokens of the first and of the third
// (page and partition are multiples of 16). They may suffice for smaller pages too (512 divides a partition, the last
// partition is short), so the test is on the partition itself.
struct PagesByNumber {
  int first_page;
  int second_page;
  int first_position;  // of token 0 in the first page
  int second_token;    // the first token of the second page
  int page;
  const PageMap* map;  // null where two numbers suffice; the same for all threads of a block

  __device__ __forceinline__ TokenAddress operator()(int i) const {
    if (map != nullptr) return {map->physical_page[i], (first_position + i) % page};
    return i < second_token ? TokenAddress{first_page, first_position + i}
                            : TokenAddress{second_page, i - second_token};
  }
};

// A barrier must separate this from the first use: all threads of the block fill the map.
__device__ __forceinline__ PagesByNumber compact_pages(PageMap& map, const int* table, int page,
                                                       const Partition& partition) {
  const int first = partition.first / page;
  const int last = (partition.first + partition.tokens - 1) / page;
  const int first_position = partition.first % page;
  const bool two = last - first <= 1;
  if (!two) {
    for (int i = threadIdx.x; i < partition.tokens; i += kThreads) {
      map.physical_page[i] = table[first + (first_position + i) / page];
    }
  }
  return {table[first], table[last], first_position, page - first_position, page, two ? nullptr : &map};
}

}  // namespace scalar
