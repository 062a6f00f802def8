// The variants of kernels/CONTRACT.md, section 8, as policies of the one template in splits.cuh. Each derives
// from its parent and states what it changes: which thread loads what and when, never an operation or an
// order, `Fp64Sum` excepted.
#pragma once
#include "geometry.cuh"

namespace grouped {

template <int G>
struct VectorLoads {
  static constexpr int row_tiles = 1;           // 16-row tiles that one block serves
  static constexpr int threads = 128;           // of one block, whole warps
  static constexpr int page = 0;                // tokens a page; 0: known at run time only
  static constexpr int panel_tiles = 1;         // tiles of tokens that are loaded together
  static constexpr int products_in_flight = 1;  // K16 products of QK that do not wait for each other
  static constexpr int qk_slots = 16;           // slots and tokens of one product of QK
  static constexpr int qk_tokens = 16;
  static constexpr bool keys_left = false;      // whether K, not q, is the left operand of QK
  static constexpr bool sums_in_fp64 = false;   // whether QK's products are summed in FP64, not compensated
  static constexpr bool state_in_registers = false;  // whether each warp keeps the state of all rows
  static constexpr bool reuses_values = false;  // whether a V fragment serves all row tiles of its warp
  static constexpr bool skips_unseen = false;   // whether a row tile that sees nothing of a tile does nothing
};

template <int G>
struct SharedKv : VectorLoads<G> {
  static constexpr int row_tiles = all_row_tiles<G>;
  static constexpr int threads = 256;
};

template <int G, int Page>
struct PageSpecialized : SharedKv<G> {
  static constexpr int page = Page;
};

template <int G, int Page>
struct OrderedQkPv : PageSpecialized<G, Page> {
  static constexpr int products_in_flight = 2;
  static constexpr bool reuses_values = true;
};

template <int G, int Page>
struct N64 : OrderedQkPv<G, Page> {
  static constexpr int panel_tiles = 2;
};

template <int G, int Page>
struct VisibleTile : OrderedQkPv<G, Page> {
  static constexpr bool skips_unseen = true;
};

template <int G, int Page>
struct RegisterSoftmax : VisibleTile<G, Page> {
  static constexpr bool state_in_registers = true;
};

template <int G, int Page>
struct M8n32Qk : VisibleTile<G, Page> {
  static constexpr int qk_slots = 8;
  static constexpr int qk_tokens = 32;
};

template <int G, int Page>
struct OperandRotation : VisibleTile<G, Page> {
  static constexpr bool keys_left = true;
};

template <int G, int Page>
struct Fp64Sum : VisibleTile<G, Page> {
  static constexpr bool sums_in_fp64 = true;
};

}  // namespace grouped
