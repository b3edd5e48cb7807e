// Two binary trees, each for half of the message, such that (almost) every rank is a leaf in one and an inner node in
// the other: both directions of every rank's link are busy. The halves travel in pieces, so that the levels work at the
// same time. Source: Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// Parallel Computing 35 (2009); the trees are NCCL's (src/graph/trees.cc).
#include <algorithm>
#include <vector>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

/// Pieces per tree: the pipeline's ramp of 2·depth phases stays below the 16 phases of full use up to 256 ranks.
constexpr int pieces = 16;

struct Tree {
  std::vector<int> parent;  ///< -1 for the root
  std::vector<int> depth;   ///< edges to the root
  int height = 0;           ///< greatest depth
};

/// Parent in the tree in which even ranks (but 0, the root) are inner nodes and odd ranks are leaves.
int in_order_parent(int rank, int ranks) {
  if (rank == 0) return -1;
  const int lowest_bit = rank & -rank;
  const int up = (rank ^ lowest_bit) | (lowest_bit << 1);
  return up < ranks ? up : rank ^ lowest_bit;
}

Tree make_tree(int ranks, bool second) {
  // The second tree is the first one mirrored (even number of ranks) or shifted by one (odd): leaves become inner
  // nodes.
  const auto relabel = [&](int rank) {
    if (!second) return rank;
    return ranks % 2 == 0 ? ranks - 1 - rank : (rank + 1) % ranks;
  };
  Tree tree{std::vector<int>(ranks, -1), std::vector<int>(ranks, 0), 0};
  for (int rank = 0; rank < ranks; ++rank) {
    const int up = in_order_parent(rank, ranks);
    tree.parent[relabel(rank)] = up < 0 ? -1 : relabel(up);
    int depth = 0;
    for (int node = up; node >= 0; node = in_order_parent(node, ranks)) ++depth;
    tree.depth[relabel(rank)] = depth;
    tree.height = std::max(tree.height, depth);
  }
  return tree;
}

bool is_piece(int piece) { return piece >= 0 && piece < pieces; }

/// The transfers of one tree in one phase. Piece k leaves a rank of depth d towards the root in phase height - d + k,
/// is complete there after phase height - 1 + k, and leaves a rank of depth d downwards in phase height + d + k.
void add_transfers(const Tree& tree, int first_chunk, int index, Phase& transfers) {
  for (int rank = 0; rank < static_cast<int>(tree.parent.size()); ++rank) {
    const int parent = tree.parent[rank];
    if (parent < 0) continue;
    const int up = index - (tree.height - tree.depth[rank]);
    const int down = index - (tree.height + tree.depth[rank] - 1);
    if (is_piece(up)) transfers.push_back({rank, parent, first_chunk + up, 1, Transfer::Kind::reduce});
    if (is_piece(down)) transfers.push_back({parent, rank, first_chunk + down, 1, Transfer::Kind::copy});
  }
}

int root_of(const Tree& tree) {
  return static_cast<int>(std::find(tree.parent.begin(), tree.parent.end(), -1) - tree.parent.begin());
}

/// One direction only, between rank 0 and all: where another rank is the tree's root, the pieces pass between the two
/// in one hop more. Rank 0 needs no copy of its own message.
void add_broadcast(const Tree& tree, int first_chunk, int index, Phase& transfers) {
  const int root = root_of(tree);
  const int before = root == 0 ? 0 : 1;
  if (before == 1 && is_piece(index)) transfers.push_back({0, root, first_chunk + index, 1, Transfer::Kind::copy});
  for (int rank = 1; rank < static_cast<int>(tree.parent.size()); ++rank) {
    const int piece = index - (before + tree.depth[rank] - 1);
    if (rank != root && is_piece(piece)) {
      transfers.push_back({tree.parent[rank], rank, first_chunk + piece, 1, Transfer::Kind::copy});
    }
  }
}

void add_reduce(const Tree& tree, int first_chunk, int index, Phase& transfers) {
  const int root = root_of(tree);
  for (int rank = 0; rank < static_cast<int>(tree.parent.size()); ++rank) {
    const int piece = index - (tree.height - tree.depth[rank]);
    if (rank != root && is_piece(piece)) {
      transfers.push_back({rank, tree.parent[rank], first_chunk + piece, 1, Transfer::Kind::reduce});
    }
  }
  const int piece = index - tree.height;
  if (root != 0 && is_piece(piece)) transfers.push_back({root, 0, first_chunk + piece, 1, Transfer::Kind::copy});
}

/// `ramp`: phases until the first piece has passed every edge.
Schedule make(int ranks, int ramp, void (*add)(const Tree&, int, int, Phase&)) {
  const auto phase = [first = make_tree(ranks, false), second = make_tree(ranks, true), add](int index) {
    Phase transfers;
    add(first, 0, index, transfers);
    add(second, pieces, index, transfers);
    return transfers;
  };
  // From then on until the last piece leaves its first ranks, all edges are in use in all their directions.
  const auto run_length = [ramp](int index) { return index >= ramp - 1 ? std::max(1, pieces - index) : 1; };
  return {.ranks = ranks,
          .chunks = 2 * pieces,
          .phases = ranks > 1 ? ramp + pieces - 1 : 0,
          .phase = phase,
          .run_length = run_length};
}

}  // namespace

const Algorithm double_tree_algorithm = {
    .all_reduce =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, 2 * make_tree(ranks, false).height, add_transfers);
        },
    .broadcast =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, make_tree(ranks, false).height + 1, add_broadcast);
        },
    .reduce =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, make_tree(ranks, false).height + 1, add_reduce);
        },
};

}  // namespace foretrain
