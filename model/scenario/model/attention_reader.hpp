// `kind: attention` of an operator.
#pragma once

#include "model/hardware/gpu.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// { batch, heads, kv_heads (= heads), sequence, key_sequence (= sequence), head_dim, causal (= false),
///   attention (= flash), native (= true), cache (= causal), backward (= false), window, density (= 1), precision,
///   fused_softmax, dropout (standard attention; = false), splits (flash_1) }.
/// In place of sequence and key_sequence, lengths of sequences packed into each row of the batch (lengths_reader.hpp).
Operator read_attention(const Field& field);

/// Complains at the key `attention` of an operator when its kind, asked for by name, does not run
/// on the GPU; does nothing for other operators.
void check_attention(const Operator& op, const Gpu& gpu, const Field& field);

/// The same for the attention of every transformer in a model that trains or is called; `field` is the mapping that
/// says `attention` where it is stated. A network of layers has none to state.
void check_attention(const ModelConfig& model, AttentionKind kind, Precision precision, const Gpu& gpu,
                     const Field& field);

}  // namespace foretrain
