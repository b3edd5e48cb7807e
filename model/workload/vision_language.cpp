#include "model/workload/vision_language.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/base/number.hpp"
#include "model/workload/transformer.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

/// Packed sequences are as long as the model's unless the scenario says otherwise.
DataShape resolved(DataShape data, std::int64_t sequence) {
  if (data.batching.kind == Batching::Kind::packing && data.batching.length == 0) data.batching.length = sequence;
  return data;
}

SampleMix samples_of(const DataShape& data, double visual, std::int64_t sequence) {
  const bool packed = data.batching.kind == Batching::Kind::packing;
  return mix_of(data, visual, packed ? std::min(sequence, data.batching.length) : sequence);
}

/// One pass: how the towers are built for it.
struct Towers {
  Model vision, language;
  Layer projector;
};

Flops products(const std::vector<Operator>& ops) {
  Flops sum;
  for (const Operator& op : ops) {
    if (!std::holds_alternative<Streaming>(op.work)) sum += flops(op);
  }
  return sum;
}

double attention_flops(const std::vector<LayerGroup>& layers) {
  double sum = 0.0;
  for (const LayerGroup& group : layers) {
    for (const Operator& op : group.layer.forward) {
      if (std::holds_alternative<Attention>(op.work)) sum += flops(op).value() * group.repeat;
    }
  }
  return sum;
}

/// The layer of the mean pass with the memory of the largest.
Layer with_memory_of(const Layer& largest, const Layer& mean) {
  Layer layer = largest;
  layer.forward = mean.forward;
  layer.backward = mean.backward;
  layer.forward_collectives = mean.forward_collectives;
  layer.backward_collectives = mean.backward_collectives;
  layer.recomputation.run_again_as(mean.recomputation);
  layer.output = mean.output;
  return layer;
}

void append(Model& model, const Model& mean, const Model& largest) {
  for (std::size_t g = 0; g < mean.layers.size(); ++g) {
    model.layers.push_back({with_memory_of(largest.layers[g].layer, mean.layers[g].layer), mean.layers[g].repeat});
  }
}

class Assembly {
 public:
  Assembly(const TransformerConfig& language, const VisionLanguageConfig* whole, const std::string& name,
           const BuildOptions& options)
      : language_(language),
        whole_(whole),
        name_(name),
        options_(options),
        gradients_(gradients_of(options.parts, whole != nullptr)) {
    if (options.data) {
      data_ = *options.data;
    } else if (whole != nullptr) {
      data_ = usual_data(*whole);
    } else {
      data_.text = {LengthDistribution::Kind::fixed, number(language.sequence), 0, 0, 0, 0, {}};
    }
    data_ = resolved(std::move(data_), language.sequence);
    mix_ = samples_of(data_, whole == nullptr ? 0.0 : number(visual_tokens(*whole)), language.sequence);
    // Standard attention computes all scores of a packed sequence and masks those between samples.
    batch_ = batch_shape(mix_, data_.batching, options.micro_batch, options.attention == AttentionKind::standard);
  }

  Model build() const {
    const Towers mean = towers(batch_.mean);
    const Towers largest = towers(batch_.largest);
    Model model;
    model.name = name_;
    model.parameters = transformer_parameters(language_);
    model.idle_parameters = idle_parameters(language_);
    std::optional<std::size_t> projector;
    if (whole_ != nullptr) {
      model.parameters += mean.vision.parameters + projector_parameters(*whole_);
      append(model, mean.vision, largest.vision);
      projector = model.layers.size();
      model.layers.push_back({with_memory_of(largest.projector, mean.projector), 1});
    }
    append(model, mean.language, largest.language);
    const double ranks = number(options_.tensor) * options_.context;
    Flops forward;
    Flops backward;
    for (std::size_t g = 0; g < model.layers.size(); ++g) {
      const LayerGroup& group = model.layers[g];
      const double parts = g == projector ? 1.0 : ranks;  // it is whole on every tensor-parallel rank
      forward += products(group.layer.forward) * (parts * group.repeat);
      backward += products(group.layer.backward) * (parts * group.repeat);
    }
    const auto samples = number(options_.micro_batch);
    model.forward_flops_per_sample = forward / samples;
    model.backward_flops_per_sample = backward / samples;
    model.tokens_per_sample = batch_.tokens_per_sample;
    model.input_bytes_per_sample = Bytes(8.0 * batch_.computed_per_sample);
    Model::Batch use;
    use.computed_tokens = batch_.computed_per_sample;
    if (whole_ != nullptr) {
      use.images = batch_.images_per_sample;
      use.visual_tokens = use.images * number(visual_tokens(*whole_));
      const auto pixels = number(whole_->vision.image_size) * number(whole_->vision.image_size);
      model.input_bytes_per_sample += Bytes(12.0 * pixels * use.images);  // three fp32 channels
    }
    if (whole_ != nullptr || options_.data) {
      model.batch = use;
      add_variation(model, mean);
    }
    return model;
  }

 private:
  [[nodiscard]] Towers towers(const PassShape& pass) const {
    Towers towers;
    BuildOptions options = options_;
    if (language_.decoder_layers == 0) options.pass = pass.language;  // its two stacks differ in length
    TowerOptions language;
    language.gradients = gradients_;
    language.lora = options_.parts.lora;
    towers.language = build_transformer(language_, name_, options, language);
    if (whole_ == nullptr) return towers;

    const auto tokens = number(tokens_of_sample(whole_->vision));
    TowerOptions vision;
    options.pass = pass_tokens(pass.images * tokens, pass.images, pass.images * tokens * tokens);
    vision.gradients.embedding = vision.gradients.blocks = gradients_.vision;
    vision.headless = true;
    towers.vision = build_transformer(whole_->vision, name_, options, vision);
    for (LayerGroup& group : towers.vision.layers) group.layer.name = "vision " + group.layer.name;
    towers.projector = build_projector(*whole_, pass.images, number(pass.language.tokens), options_,
                                       gradients_.projector, gradients_.vision == Gradients::all);
    return towers;
  }

  /// Growth of arithmetic with tokens, pairs of tokens and images, read off the mean pass.
  void add_variation(Model& model, const Towers& mean) const {
    const PassTokens& pass = batch_.mean.language;
    const double pairs = attention_flops(mean.language.layers);
    Flops all;
    for (const LayerGroup& group : mean.language.layers) {
      all += products(group.layer.forward) * number(group.repeat);
    }
    WorkWeights work;
    work.per_token = (all.value() - pairs) / number(pass.tokens);
    work.per_pair = pairs / (number(pass.batch) * std::pow(number(pass.length), 2));
    if (whole_ != nullptr && batch_.mean.images > 0.0) {
      Flops images = products(mean.projector.forward);
      for (const LayerGroup& group : mean.vision.layers) {
        images += products(group.layer.forward) * number(group.repeat);
      }
      work.per_image = images.value() / batch_.mean.images;
    }
    model.variation = pass_variation(mix_, data_.batching, options_.micro_batch, work);
  }

  const TransformerConfig& language_;
  const VisionLanguageConfig* whole_;  ///< null for a language model alone
  const std::string& name_;
  const BuildOptions& options_;
  PartGradients gradients_;
  DataShape data_;
  SampleMix mix_;
  BatchShape batch_;
};

}  // namespace

DataShape usual_data(const VisionLanguageConfig& config) {
  DataShape data;
  data.text.value = number(std::max<std::int64_t>(config.language.sequence - visual_tokens(config), 0));
  return data;
}

SampleMix samples_of(const DataShape& data, const ModelConfig& model) {
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) {
    const std::int64_t sequence = whole->language.sequence;
    return samples_of(resolved(data, sequence), number(visual_tokens(*whole)), sequence);
  }
  const std::int64_t sequence = std::get<TransformerConfig>(model.shape).sequence;
  return samples_of(resolved(data, sequence), 0.0, sequence);
}

Model build_vision_language(const VisionLanguageConfig& config, const std::string& name, const BuildOptions& options) {
  return Assembly(config.language, &config, name, options).build();
}

Model build_language(const TransformerConfig& config, const std::string& name, const BuildOptions& options) {
  if (options.parts.all() && !options.data) return build_transformer(config, name, options);
  return Assembly(config, nullptr, name, options).build();
}

}  // namespace foretrain
