// The staged variants of kernels/CONTRACT.md, section 8, as policies of the one template in splits.cuh. Each derives
// from its parent and states only what it changes: which thread loads what and when, never an operation or an order.
#pragma once
#include "products.cuh"

namespace grouped::staged {

// Row tiles that hold every row and head.
template <int G>
constexpr int all_row_tiles = (kMaxRows * G + kTileRows - 1) / kTileRows;

template <int G>
struct VectorLoads {
  using Qk = QueriesLeft<16, 16>;  // one product of QK
  template <class Score>
  using Sum = KahanSum<Score>;                       // the sum of QK's products
  static constexpr int row_tiles = 1;                // 16-row tiles that one block serves
  static constexpr int threads = 128;                // of one block, whole warps
  static constexpr int page = 0;                     // tokens a page; 0: known at run time only
  static constexpr int panel_tiles = 1;              // tiles of tokens that are loaded together
  static constexpr int products_in_flight = 1;       // K16 products of QK that do not wait for each other
  static constexpr bool state_in_registers = false;  // whether each warp keeps the state of all rows
  static constexpr bool reuses_values = false;       // whether a V fragment serves all row tiles of its warp
  static constexpr bool skips_unseen = false;        // whether a row tile that sees nothing of a tile does nothing
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
struct VisibleTile : OrderedQkPv<G, Page> {
  static constexpr bool skips_unseen = true;
};

}  // namespace grouped::staged
