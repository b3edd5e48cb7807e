// Collectives of tensor parallelism in chunks behind the products that they belong to (key plan.tensor_overlap).
//
// An all-gather before a product brings one rank's rows after the other, and the product of those that are there runs
// then. A reduce-scatter behind a product sends the rows that are done. With n ranks there are n chunks. A rank's
// own rows need no gathering, and those that it keeps no sending, so that the collective runs beside n − 1 of the
// product's chunks. It takes max(collective, product · (n − 1) / n) + product / n instead of the sum. Chunks are
// products of their own, of an nth of the rows: tiles of each fill waves by themselves, and each starts and drains.
// Sending takes multiprocessors from them as any collective does beside kernels. In the backward pass the gradients
// of inputs are scattered behind the weights' gradients, a whole product of the same size; here it is taken from the
// inputs' own. Sources: Transformer Engine's user buffers (module/base.py, initialize_ub: "ring_exchange" and
// "pipeline" for forward products and the gathers of the backward pass, "bulk" for qkv_wgrad and fc1_wgrad); PyTorch's
// asynchronous tensor parallelism (fused all-gather-matmul and matmul-reduce-scatter in chunks of ranks).
#pragma once

#include <vector>

#include "model/workload/model.hpp"

namespace foretrain {

/// The products that a block's pass chunks each gather and each scatter of its tensor ranks behind, in their order.
/// None for experts, whose tokens are sent elsewhere in between, and none where there is no attention, as in the
/// embedding and the loss.
struct OverlappedProducts {
  std::vector<std::vector<Operator>> gathers, scatters;
  std::vector<std::vector<Operator>> again;  ///< backward: beside which inputs are gathered again
};
OverlappedProducts overlapped_products(const std::vector<Operator>& pass, bool backward);

/// One of `chunks` parts of these products, each of which has that share of the rows.
std::vector<Operator> chunk_of(std::vector<Operator> products, int chunks);

}  // namespace foretrain
