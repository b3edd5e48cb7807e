// Shape of an attention operator.
#pragma once

#include <cstdint>
#include <string>

#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

/// Softmax(Q Kᵀ / sqrt(head_dim)) V, as in Attention (model/workload/attention.hpp). Tensors are [batch, heads,
/// sequence, head_dim]; query i of q sees the first keys - q + i keys and its own with a causal mask.
struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, head_dim = 1;
  bool causal = false, backward = false, fused_softmax = false;
  std::string kind = "flash";  ///< as a scenario names it; "standard" is the unfused one
  std::string precision = "fp32";
  std::string name = {};  ///< of the operator, forward
};

/// Reads the fields of an `attention`. Throws std::invalid_argument, and GpuError with Fault::unsupported for what
/// there is no kernel for here (windows, block-sparse masks, packed lengths, dropout).
AttentionShape attention_shape(const OperatorSpec& spec);

/// Products, softmax and mask as kernels of their own; scores are written to memory.
std::unique_ptr<OperatorRunner> make_standard_attention(const AttentionShape& shape, const RunnerSetting& setting);
/// cuDNN's fused attention. Throws GpuError with Fault::unsupported where cuDNN or this GPU has none.
std::unique_ptr<OperatorRunner> make_fused_attention(const AttentionShape& shape, const RunnerSetting& setting);

}  // namespace foretrain::gpu
