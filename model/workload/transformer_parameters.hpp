// Trainable numbers of transformers, and what sets their families apart.
#pragma once

#include <cstdint>

#include <vector>

#include "model/workload/model.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain {

/// Trainable numbers of one layer's parts and of both ends; of the whole model, not divided by ranks.
struct TransformerCounts {
  double attention = 0.0, norms = 0.0;  ///< per layer
  double ffn = 0.0, experts = 0.0;      ///< per layer: what every token meets, the router of experts; and these
  double mamba = 0.0;                   ///< per layer
  double embedding = 0.0, head = 0.0;
};
TransformerCounts transformer_counts(const TransformerConfig& config, LayerKind kind = LayerKind::block);

/// Trainable numbers of the whole model, as published counts are stated: without what predicts further tokens; of the
/// experts this share.
double transformer_parameters(const TransformerConfig& config, double of_experts = 1.0);
/// Parameters of experts that a token is not sent to.
double idle_parameters(const TransformerConfig& config);

/// Shapes to the parameters that transformer_counts() adds up at both ends, each divided over `tensor` ranks.
std::vector<WeightMatrix> embedding_matrices(const TransformerConfig& config, std::int64_t tensor);
std::vector<WeightMatrix> head_matrices(const TransformerConfig& config, std::int64_t tensor);

/// gpt, bert and t5 are trained with dropout; llama, mpt and vit without.
bool has_dropout(TransformerFamily family);
/// gpt, bert and vit learn a vector per position; llama rotates, mpt and t5 bias the scores.
bool has_learned_positions(TransformerFamily family);
/// All but bert and vit predict the next token and look backwards only; t5's encoder looks both ways.
bool is_causal(TransformerFamily family);
/// Trainable numbers of a norm: scale, and shift where there is one.
double norm_parameters(const TransformerConfig& config);
/// Tokens of one sample as the blocks see them (vit: patches and the class token).
std::int64_t tokens_of_sample(const TransformerConfig& config);

}  // namespace foretrain
