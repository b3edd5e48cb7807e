// Two binary trees, each for half of the message, such that (almost) every rank is a leaf in one and an inner node in
// the other: both directions of every rank's link are busy. The halves travel in pieces, so that the levels work at the
// same time. Source: Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// Parallel Computing 35 (2009); the trees are NCCL's (src/graph/trees.cc).
#include <algorithm>
#include <vector>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

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

/// The transfers of one tree in one phase. Piece k leaves a rank of depth d towards the root in phase height - d + k,
/// is complete there after phase height - 1 + k, and leaves a rank of depth d downwards in phase height + d + k. One
/// way alone is between rank 0 and all: where another rank is the tree's root, the pieces pass between the two in one
/// hop more.
void add_transfers(const Tree& tree, CollectiveOperation operation, int first_chunk, int index, Phase& transfers) {
  const auto root = static_cast<int>(std::ranges::find(tree.parent, -1) - tree.parent.begin());
  const bool one_more = has_root(operation) && root != 0;
  const auto move = [&](int from, int to, int piece, Transfer::Kind kind) {
    if (piece >= 0 && piece < pieces) transfers.push_back({from, to, first_chunk + piece, 1, kind});
  };
  if (one_more && copies(operation)) move(0, root, index, Transfer::Kind::copy);
  const int first_down = reduces(operation) ? tree.height : one_more ? 1 : 0;
  for (int rank = 0; rank < static_cast<int>(tree.parent.size()); ++rank) {
    const int parent = tree.parent[rank], depth = tree.depth[rank];
    if (rank == root) continue;
    if (reduces(operation)) move(rank, parent, index - (tree.height - depth), Transfer::Kind::reduce);
    const bool has_it = operation == broadcast && rank == 0;
    if (copies(operation) && !has_it) move(parent, rank, index - (first_down + depth - 1), Transfer::Kind::copy);
  }
  if (one_more && reduces(operation)) move(root, 0, index - tree.height, Transfer::Kind::copy);
}

Schedule double_tree(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  const auto phase = [=, first = make_tree(ranks, false), second = make_tree(ranks, true)](int index) {
    Phase transfers;
    add_transfers(first, operation, 0, index, transfers);
    add_transfers(second, operation, pieces, index, transfers);
    return transfers;
  };
  // Phases until the first piece has passed every edge. From then on until the last piece leaves its first ranks, all
  // edges are in use in all their directions.
  const int height = make_tree(ranks, false).height, ramp = has_root(operation) ? height + 1 : 2 * height;
  const auto stretch = [ramp](int index) -> Schedule::Stretch {
    return {index >= ramp - 1 ? std::max(1, pieces - index) : 1, index};
  };
  return joined(ranks, 2 * pieces, {{ramp + pieces - 1, phase, -1, stretch}});
}

}  // namespace

const Algorithm double_tree_algorithm = {.operations = {all_reduce, broadcast, reduce}, .build = double_tree};

}  // namespace foretrain
