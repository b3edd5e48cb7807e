// The batch that somebody would train a model with: the published one, or what trainings of its kind have published.
#pragma once

#include <cstdint>
#include <string>

#include "model/scenario/yaml_reader.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain {

/// Tokens of a sample as the model takes it; 0 for models of images.
double tokens_of_samples(const ModelConfig& model);

/// The number of samples near `wanted` that GPUs can divide: itself where they do, else the multiple of gpus x 2^k that
/// is at most a tenth away, with the largest k (of either sign) for which there is one, so that plans find
/// micro-batches and stages. Where there is none, the nearest multiple of `gpus`, one at least.
std::int64_t divisible_batch(double wanted, std::int64_t gpus);

struct UsualBatch {
  std::int64_t samples = 1;  ///< of a step
  std::string why;           ///< source: "its makers: 4 M tokens, …"
};

/// The published batch of the model (key `published_batch`), in tokens where it has some, so that longer samples are
/// fewer. Else:
/// - language models: that of the GPT-3 model nearest in size, 0.5 M to 3.2 M tokens (Brown et al. 2020, arXiv
///   2005.14165, table 2.1), which followed the gradient's noise scale (McCandlish et al. 2018, arXiv 1812.06162);
/// - images by transformers: 4,096 (Dosovitskiy et al. 2020, arXiv 2010.11929, table 3);
/// - images by other networks: 32 a GPU, from 256 up to 8,192, where accuracy began to fall (Goyal et al. 2017, arXiv
///   1706.02677);
/// - images with text: 128 (Liu et al. 2023, arXiv 2310.03744).
/// Rounded by divisible_batch(). `model` as in read_model(), which throws ScenarioError.
UsualBatch usual_batch(const Field& model, std::int64_t gpus);

}  // namespace foretrain
