// Attention as a graph of cuDNN's elementary operations, of which it makes one fused kernel forward and one backward.
// The pattern is the one that cuDNN's documentation gives for its fused flash attention engines ("Graph API", "Fused
// Flash Attention fprop" and "bprop").
#pragma once

#ifdef FORETRAIN_HAS_CUDNN

#include "validate/cuda/math/attention_shape.hpp"
#include "validate/cuda/math/cudnn_graph.hpp"

namespace foretrain::gpu {

/// The tensors of an attention graph that are given at launch, by cuDNN's identifiers; 0 where a graph has none.
struct AttentionIds {
  std::int64_t q = 0, k = 0, v = 0, out = 0;
  std::int64_t statistics = 0;  ///< fp32 [batch, heads, queries, 1]: logarithms of the sums of exponentials
  std::int64_t d_out = 0, dq = 0, dk = 0, dv = 0;
  std::int64_t row_sums = 0;                    ///< fp32, like the statistics: scratch of the backward graph
  std::int64_t dq_sums = 0;                     ///< fp32, like dq: scratch of the backward graph
  std::int64_t scale = 0, one = 0, lowest = 0;  ///< fp32 numbers on the host
};

/// Adds forward operations, in training (statistics are kept), to an empty graph.
AttentionIds attention_forward_graph(CudnnGraph& graph, const AttentionShape& shape, Format format);
/// Adds backward operations to an empty graph.
AttentionIds attention_backward_graph(CudnnGraph& graph, const AttentionShape& shape, Format format);

}  // namespace foretrain::gpu
#endif
