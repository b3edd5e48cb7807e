// Two binary trees, each for half of the message, such that (almost) every rank is a leaf in one and an inner node in
// the other. Both directions of every rank's link are busy. The halves travel in pieces, so that the levels work at the
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

/// The transfers of one tree in one phase. Piece k leaves a rank of depth d towards the root in phase height - d + k,
/// is complete there after phase height - 1 + k, and leaves a rank of depth d downwards in phase height + d + k.
void add_transfers(const Tree& tree, int first_chunk, int index, Phase& transfers) {
  const auto move = [&](int from, int to, int piece, Transfer::Kind kind) {
    if (piece >= 0 && piece < pieces) transfers.push_back({from, to, first_chunk + piece, 1, kind});
  };
  for (int rank = 0; rank < static_cast<int>(tree.parent.size()); ++rank) {
    const int parent = tree.parent[rank], depth = tree.depth[rank];
    if (parent < 0) continue;
    move(rank, parent, index - (tree.height - depth), Transfer::Kind::reduce);
    move(parent, rank, index - (tree.height + depth - 1), Transfer::Kind::copy);
  }
}

Schedule double_tree(CollectiveOperation /*all_reduce*/, int ranks, const ScheduleShape& /*shape*/) {
  const auto phase = [=, first = make_tree(ranks, false), second = make_tree(ranks, true)](int index) {
    Phase transfers;
    add_transfers(first, 0, index, transfers);
    add_transfers(second, pieces, index, transfers);
    return transfers;
  };
  // Phases until the first piece has passed every edge. From then on until the last piece leaves its first ranks, all
  // edges are in use in all their directions.
  return joined(ranks, 2 * pieces, {pipeline(2 * make_tree(ranks, false).height, pieces, phase)});
}

}  // namespace

const Algorithm double_tree_algorithm = {.operations = {CollectiveOperation::all_reduce}, .build = double_tree};

}  // namespace foretrain
