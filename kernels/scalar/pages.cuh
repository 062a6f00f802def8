// The page policies: where the partition's token i lies. Only tokens of the partition may be asked for, so no
// table entry past that of the last visible token is read.
#pragma once
#include "geometry.cuh"

namespace scalar {

struct Place {
  int physical_page;
  int position;
};

// Divides and reads the table for every token.
struct PagesByTable {
  const int* table;
  int page;
  int first;  // the partition's first token

  __device__ __forceinline__ Place operator()(int i) const {
    const int token = first + i;
    return {table[token / page], token % page};
  }
};

// The physical page of each token of a partition: what two page numbers cannot say. 4,096 bytes.
struct PageMap {
  int physical_page[kPartitionTokens];
};

// Two page numbers, wherever the partition's tokens lie on at most two pages. That always holds where
// page >= 1008: a third page needs all of a second one between at least 16 tokens of the first and of the
// third (page and partition are multiples of 16). It may hold for smaller pages (512 divides a partition, the
// last partition is short), so what is tested is the partition itself. Where it fails, the map serves.
struct PagesByNumber {
  int first_page;
  int second_page;
  int first_position;  // of token 0 in the first page
  int turn;            // the first token of the second page
  int page;
  const PageMap* map;  // null where two numbers suffice; the same for all threads of a block

  __device__ __forceinline__ Place operator()(int i) const {
    if (map != nullptr) return {map->physical_page[i], (first_position + i) % page};
    return i < turn ? Place{first_page, first_position + i} : Place{second_page, i - turn};
  }
};

// A barrier must stand between this and the first use: the map is filled by all threads of the block.
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
