// What attention must result in, worked out on the host in double precision for a few of its numbers.
#pragma once

#include "validate/cuda/math/attention_shape.hpp"
#include "validate/cuda/math/probe.hpp"

namespace foretrain::gpu {

/// [batch, heads, sequence, head_dim] of the queries and their results, kv_heads for keys and values.
struct AttentionTensors {
  const void *q, *k, *v, *out;
};
struct AttentionGradients {
  const void *d_out, *dq, *dk, *dv;
  const float* logarithms;  ///< of the sums of exponentials, one a query
};

/// Throw GpuError with Fault::failed where a sampled number is wrong. Synchronise.
void verify_attention(const AttentionShape& shape, const AttentionTensors& tensors, cudaStream_t stream);
/// Gradients of keys and values, which need all queries, are looked at where these are few enough.
void verify_attention_gradients(const AttentionShape& shape, const AttentionTensors& tensors,
                                const AttentionGradients& gradients, cudaStream_t stream);

}  // namespace foretrain::gpu
