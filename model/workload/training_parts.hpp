// Which parts of a model are trained: frozen parts, and low-rank adapters beside frozen matrices.
#pragma once

#include <cstdint>
#include <optional>

#include "model/workload/model.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/quantisation.hpp"

namespace foretrain {

/// Low-rank adaptation (Hu et al. 2021, arXiv 2106.09685): beside a frozen matrix W of out × in, the product B·A of
/// out × rank and rank × in is trained. Targets of a block: queries, keys, values and output of its attention; the
/// matrices of its feed-forward half.
struct Lora {
  std::int64_t rank = 16;
  bool attention = true, ffn = true;
  bool qkv = false;  ///< only queries, keys and values of the attention, which share an A: one product (NeMo)
  bool operator==(const Lora&) const = default;
};

/// Values of `workload.train.freeze` and `workload.train.lora`. Adapters freeze the whole language model.
struct TrainedParts {
  bool vision_frozen = false, projector_frozen = false;
  bool embedding_frozen = false, blocks_frozen = false, head_frozen = false;  ///< the language model's parts
  std::optional<Lora> lora;
  FrozenWeights quantised;  ///< beside adapters
  bool operator==(const TrainedParts&) const = default;
  /// Everything is trained, as usual.
  [[nodiscard]] bool all() const { return *this == TrainedParts{}; }
};

/// Gradients that a part's backward pass computes: of weights and inputs; of inputs alone, because the part is frozen
/// but something before it is trained; or none, because nothing before it is trained either.
enum class Gradients { all, inputs, none };

struct PartGradients {
  Gradients vision = Gradients::all, projector = Gradients::all;
  Gradients embedding = Gradients::all, blocks = Gradients::all, head = Gradients::all;
};

/// Parts come in the order vision, projector, embedding, blocks, head; a language model alone has no first two.
PartGradients gradients_of(const TrainedParts& parts, bool with_vision);

/// A layer whose weights are held but not trained: no gradients, no optimizer states, nothing to synchronise.
void hold_weights(Layer& layer);

/// Such a layer without a backward pass: nothing is kept for it.
void forward_only(Layer& layer);

/// Trainable numbers of a block's adapters on one rank. A matrix whose outputs are divided over `tensor` ranks
/// (queries, keys, values, feed-forward in) has its B divided, one whose inputs are, its A.
double lora_parameters(const Lora& lora, const TransformerConfig& config, int tensor = 1);

/// Changes of a transformer block by freezing its weights, beyond hold_weights and forward_only, for `tokens` tokens a
/// pass and rank. Activations that weight gradients alone need are not kept: the outputs of both norms and the input of
/// the second feed-forward product, unless there are adapters beside those products. Adapters add for each target two
/// thin products and their sum with the frozen product's result, and backward two products for each of A and B.
struct AdaptedBlock {
  std::int64_t tokens = 1;
  int tensor = 1;
  bool sequence_parallel = false;
  Precision precision = Precision::bf16;
  bool plain = false;  ///< adapters run operation by operation, with dropout (PEFT, tuners/lora/layer.py)
};
void adapt_frozen_block(Layer& block, const std::optional<Lora>& lora, const TransformerConfig& config,
                        const AdaptedBlock& shape);

/// Frozen matrices of a block are stored shorter, and one at a time is there as `precision` has it; other frozen layers
/// are kept in fp32 then (PEFT, utils/other.py: prepare_model_for_kbit_training).
void store_quantised(Layer& layer, const FrozenWeights& stored, Precision precision);

}  // namespace foretrain
