// Vision–language models, and language models whose samples differ in length.
#pragma once

#include <string>

#include "model/workload/build.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// The layers of the image encoder (all of its blocks, no classifier), the projector, and the language model. Without
/// options.data every sample has one image and fills language.sequence.
Model build_vision_language(const VisionLanguageConfig& config, const std::string& name, const BuildOptions& options);

/// A language model with frozen parts, adapters, or samples of different lengths; otherwise build_transformer's.
Model build_language(const TransformerConfig& config, const std::string& name, const BuildOptions& options);

/// The samples of a data set as a model sees them: longer ones are cut to its sequence, or to a packed one.
SampleMix samples_of(const DataShape& data, const ModelConfig& model);

/// The data set where a scenario says nothing: one image, and text up to the language model's sequence.
DataShape usual_data(const VisionLanguageConfig& config);

/// Tokens that one image becomes in the language model's sequence: its patches (the class token is dropped), joined
/// `merge` × `merge` at a time, or a resampler's queries.
std::int64_t visual_tokens(const VisionLanguageConfig& config);

/// Trainable numbers of the projector.
/// mlp (LLaVA-1.5, Liu et al. 2023, arXiv 2310.03744): linear layers with biases from merge² · vision width through
/// `hidden` to the language model's width.
/// resampler (Flamingo's Perceiver resampler, arXiv 2204.14198; Qwen-VL, arXiv 2308.12966): queries, a product from the
/// patches' width, blocks of cross-attention (queries, keys, values, output; with self_attention a second set),
/// feed-forward halves, norms, and a product to the language model's width.
double projector_parameters(const VisionLanguageConfig& config);

/// The projector for `images` images a pass, and the insertion of its tokens into `sequence_tokens` embeddings. It is
/// not divided over tensor-parallel ranks. `input_gradient`: the encoder before it is trained.
Layer build_projector(const VisionLanguageConfig& config, double images, double sequence_tokens,
                      const BuildOptions& options, Gradients gradients, bool input_gradient);

}  // namespace foretrain
