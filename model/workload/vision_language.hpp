// Vision–language models, and language models whose samples differ in length.
#pragma once

#include <string>

#include "model/workload/build.hpp"

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

}  // namespace foretrain
