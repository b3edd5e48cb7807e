// `kind: attention` of an operator.
#pragma once

#include "model/scenario/yaml_reader.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// { batch, heads, kv_heads (= heads), sequence, key_sequence (= sequence), head_dim, causal (= false),
///   attention (= flash), native (= false), backward (= false), precision }
Operator read_attention(const Field& field);

}  // namespace foretrain
