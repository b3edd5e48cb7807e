// Rings in two levels: reduce-scatter inside each node, all-reduce between the nodes among the ranks of equal local
// index (each for its share, all network cards at once), all-gather inside each node. Per rank 2(l-1)/l·S stays inside
// the node and only 2(m-1)/(m·l)·S leaves it (m nodes of l ranks). Ranks are numbered node by node.
#include <stdexcept>

#include "model/collectives/algorithms.hpp"

namespace foretrain {

namespace {
struct Shape {
  int nodes, locals;
};

int modulo(int value, int n) { return ((value % n) + n) % n; }

/// Inside every node, local rank j passes block (j - lag) on; a block is one chunk per node.
Phase inner_hop(Shape shape, int lag, TransferKind kind) {
  Phase transfers;
  for (int node = 0; node < shape.nodes; ++node) {
    for (int local = 0; local < shape.locals; ++local) {
      const int base = node * shape.locals;
      transfers.push_back({base + local, base + (local + 1) % shape.locals,
                           modulo(local - lag, shape.locals) * shape.nodes, shape.nodes, kind});
    }
  }
  return transfers;
}

/// Between nodes, within block j among the ranks of local index j, node k passes chunk (k - lag) on.
Phase outer_hop(Shape shape, int lag, TransferKind kind) {
  Phase transfers;
  for (int node = 0; node < shape.nodes; ++node) {
    for (int local = 0; local < shape.locals; ++local) {
      const int next = (node + 1) % shape.nodes;
      transfers.push_back({node * shape.locals + local, next * shape.locals + local,
                           local * shape.nodes + modulo(node - lag, shape.nodes), 1, kind});
    }
  }
  return transfers;
}
}  // namespace

Schedule hierarchical_all_reduce(int ranks, int ranks_per_node) {
  if (ranks_per_node < 1 || ranks % ranks_per_node != 0) {
    throw std::invalid_argument("hierarchical all-reduce: the same number of ranks on every node is needed");
  }
  const Shape shape{ranks / ranks_per_node, ranks_per_node};
  const int inner = shape.locals - 1;
  const int outer = 2 * (shape.nodes - 1);
  const auto phase = [=](int index) {
    if (index < inner) return inner_hop(shape, index + 1, TransferKind::reduce);
    if (index < inner + outer / 2) return outer_hop(shape, index - inner + 1, TransferKind::reduce);
    if (index < inner + outer) return outer_hop(shape, index - inner - outer / 2, TransferKind::copy);
    return inner_hop(shape, index - inner - outer, TransferKind::copy);
  };
  const auto run_length = [=](int index) {
    if (index < inner) return inner - index;
    if (index < inner + outer) return inner + outer - index;
    return 2 * inner + outer - index;
  };
  return {.ranks = ranks, .chunks = ranks, .phases = 2 * inner + outer, .phase = phase, .run_length = run_length};
}

}  // namespace foretrain
