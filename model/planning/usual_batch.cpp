#include "model/planning/usual_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "model/base/format.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/workload/build.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

/// A number of samples that nothing divides yet.
struct Wanted {
  double samples = 1.0;
  std::string why;
};

struct TrainedBatch {
  std::string_view model;
  double parameters, tokens;
};
constexpr std::array<TrainedBatch, 8> gpt3 = {{{"GPT-3 Small", 125e6, 0.5e6},
                                               {"GPT-3 Medium", 350e6, 0.5e6},
                                               {"GPT-3 Large", 760e6, 0.5e6},
                                               {"GPT-3 XL", 1.3e9, 1e6},
                                               {"GPT-3 2.7B", 2.7e9, 1e6},
                                               {"GPT-3 6.7B", 6.7e9, 2e6},
                                               {"GPT-3 13B", 13e9, 2e6},
                                               {"GPT-3 175B", 175e9, 3.2e6}}};

Wanted as_gpt3(const ModelConfig& model, double tokens) {
  const double parameters = build_model(model, {}).parameters;
  const TrainedBatch& nearest = *std::ranges::min_element(
      gpt3, {}, [&](const TrainedBatch& one) { return std::abs(std::log(one.parameters / parameters)); });
  return {nearest.tokens / tokens,
          fmt::format("{}, the nearest in size of which it is known: {} tokens, Brown et al. 2020 (arXiv 2005.14165) "
                      "table 2.1",
                      nearest.model, format_count(nearest.tokens))};
}

Wanted by_kind(const ModelConfig& model, double tokens, std::int64_t gpus) {
  if (std::holds_alternative<VisionLanguageConfig>(model.shape)) {
    return {128.0, "LLaVA-1.5: 128, Liu et al. 2023 (arXiv 2310.03744)"};
  }
  if (tokens > 0.0) return as_gpt3(model, tokens);
  if (std::holds_alternative<TransformerConfig>(model.shape)) {
    return {4096.0, "ViT: 4,096 images, Dosovitskiy et al. 2020 (arXiv 2010.11929) table 3"};
  }
  return {std::clamp(32.0 * static_cast<double>(gpus), 256.0, 8192.0),
          "32 images a GPU, 256 at least and 8,192 at most: Goyal et al. 2017 (arXiv 1706.02677)"};
}

Wanted as_published(const PublishedBatch& batch, double tokens) {
  const bool in_tokens = batch.length.unit == TrainingLength::Unit::tokens;
  return {in_tokens && tokens > 0.0 ? batch.length.count / tokens : batch.length.count,
          fmt::format("its makers: {}{}", batch.written, batch.source.empty() ? "" : ", " + batch.source)};
}

/// In tokens of the model as the catalogue has it, whatever a scenario makes of its samples.
std::optional<PublishedBatch> in_tokens(const Field& model) {
  std::optional<PublishedBatch> batch = read_published_batch(model);
  const YamlEntry* preset = model.is_mapping() ? model.node().find("preset") : nullptr;
  if (!batch || preset == nullptr || batch->length.unit == TrainingLength::Unit::tokens) return batch;
  const double tokens = tokens_of_samples(read_model(Field(preset->value, model.path())));
  if (tokens > 0.0) batch->length = {batch->length.count * tokens, TrainingLength::Unit::tokens};
  return batch;
}

}  // namespace

double tokens_of_samples(const ModelConfig& model) {
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) {
    return samples_of(usual_data(*whole), model).tokens();
  }
  const auto* transformer = std::get_if<TransformerConfig>(&model.shape);
  if (transformer == nullptr || transformer->family == TransformerFamily::vit) return 0.0;
  return static_cast<double>(tokens_of_sample(*transformer));
}

std::int64_t divisible_batch(double wanted, std::int64_t gpus) {
  constexpr double near = 0.1;
  const std::int64_t stated = std::llround(wanted);
  if (static_cast<double>(stated) == wanted && stated % gpus == 0) return stated;
  std::int64_t unit = gpus;
  while (2.0 * static_cast<double>(unit) <= (1.0 + near) * wanted) unit *= 2;
  for (;; unit /= 2) {
    const double nearest = std::round(wanted / static_cast<double>(unit)) * static_cast<double>(unit);
    if (nearest > 0.0 && std::abs(nearest - wanted) <= near * wanted) return static_cast<std::int64_t>(nearest);
    if (unit % 2 != 0) break;
  }
  return std::max<std::int64_t>(std::llround(wanted / static_cast<double>(gpus)), 1) * gpus;
}

UsualBatch usual_batch(const Field& field, std::int64_t gpus) {
  const ModelConfig model = read_model(field);
  const double tokens = tokens_of_samples(model);
  const std::optional<PublishedBatch> published = in_tokens(field);
  Wanted wanted = published ? as_published(*published, tokens) : by_kind(model, tokens, gpus);
  return {divisible_batch(wanted.samples, gpus), std::move(wanted.why)};
}

}  // namespace foretrain
