#include "model/workload/vision_language.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "model/base/number.hpp"
#include "model/workload/block_builder.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

std::int64_t patches(const TransformerConfig& vision) { return tokens_of_sample(vision) - 1; }

std::int64_t rounded(double count) { return std::max<std::int64_t>(std::llround(count), 1); }

/// Adds operators, parameters and saved activations of one part after the other; the backward list in forward order.
class ProjectorBuilder {
 public:
  ProjectorBuilder(const VisionLanguageConfig& config, double images, const BuildOptions& options, Gradients gradients,
                   bool input_gradient)
      : config_(config),
        images_(images),
        options_(options),
        precision_(storage_precision(options.precision)),
        element_(bytes_per_element(precision_)),
        weights_(gradients == Gradients::all),
        inputs_(input_gradient) {}

  void mlp() {
    const ProjectorConfig& p = config_.projector;
    const std::int64_t joined = p.merge * p.merge;
    const std::int64_t rows = rounded(images_ * number(patches(config_.vision) / joined));
    if (p.averaged && joined > 1) {
      const double patch = number(rows) * number(config_.vision.hidden), all = number(joined);
      stream("projector mean", StreamingKind::reduction, patch, all, 1, 1, all);
    }
    std::int64_t width = config_.vision.hidden * (p.averaged ? 1 : joined);
    for (std::int64_t i = 0; i < p.layers; ++i) {
      const bool last = i + 1 == p.layers;
      const std::int64_t outputs = last ? config_.language.hidden : p.hidden;
      linear("projector " + std::to_string(i + 1), rows, outputs, width, true);
      width = outputs;
      if (last) continue;
      activation("projector activation", number(rows) * number(width));
      if (inputs_) layer_.recomputation.keep(element_ * (number(rows) * number(width)));
    }
  }

  void resampler() {
    const ProjectorConfig& p = config_.projector;
    const std::int64_t keys = patches(config_.vision);
    const double rows = images_ * number(p.queries);
    linear("resampler input", rounded(images_ * number(keys)), p.hidden, config_.vision.hidden, false);
    layer_.parameters += number(p.queries) * number(p.hidden);
    for (std::int64_t i = 0; i < p.layers; ++i) {
      const std::string block = "resampler " + std::to_string(i + 1);
      if (p.self_attention) attention(block + " self-attention", p.queries, p.queries);
      attention(block + " cross-attention", p.queries, keys);
      if (p.ffn_hidden == 0) continue;
      norm(block + " ffn norm", rounded(rows), p.hidden);
      linear(block + " ffn up", rounded(rows), p.ffn_hidden, p.hidden, true);
      activation(block + " activation", rows * number(p.ffn_hidden));
      if (inputs_) layer_.recomputation.keep(element_ * (rows * number(p.ffn_hidden)));
      linear(block + " ffn down", rounded(rows), p.hidden, p.ffn_hidden, true);
      stream(block + " ffn residual", StreamingKind::elementwise, rows * number(p.hidden), 2, 1, 1, 1);
    }
    norm("resampler norm", rounded(rows), p.hidden);
    linear("resampler output", rounded(rows), config_.language.hidden, p.hidden, false);
  }

  /// Embeddings of words and visual tokens are read, the joined sequence is written.
  void insertion(double sequence_tokens) {
    stream("visual tokens inserted", StreamingKind::gather, sequence_tokens * number(config_.language.hidden), 1, 1, 1,
           1);
    layer_.output = element_ * (sequence_tokens * number(config_.language.hidden));
  }

  Layer finish() && {
    layer_.name = "projector";
    layer_.recomputable = false;
    std::reverse(layer_.backward.begin(), layer_.backward.end());
    if (!weights_) hold_weights(layer_);
    return std::move(layer_);
  }

 private:
  /// y = x · Wᵀ + b; its input is kept where weights are trained.
  void linear(const std::string& name, std::int64_t rows, std::int64_t outputs, std::int64_t inputs, bool bias) {
    layer_.forward.push_back({name, linear_forward(rows, outputs, inputs), options_.precision, 1});
    if (inputs_) {
      layer_.backward.push_back(
          {name + " data gradient", linear_data_gradient(rows, outputs, inputs), options_.precision, 1});
    }
    if (weights_) {
      layer_.backward.push_back(
          {name + " weight gradient", linear_weight_gradient(rows, outputs, inputs), options_.precision, 1});
      layer_.recomputation.keep(element_ * (number(rows) * number(inputs)));
    }
    inputs_ = inputs_ || weights_;
    layer_.matrices.push_back({outputs, inputs});
    layer_.parameters += number(outputs) * number(inputs) + (bias ? number(outputs) : 0.0);
  }

  void stream(const std::string& name, StreamingKind kind, double elements, double reads, double writes,
              double backward_reads, double backward_writes) {
    layer_.forward.push_back(streaming_operator(name, kind, elements, reads, writes, precision_));
    if (!inputs_) return;
    layer_.backward.push_back(
        streaming_operator(name + " backward", kind, elements, backward_reads, backward_writes, precision_));
  }

  void activation(const std::string& name, double elements) {
    Marker added(layer_);
    stream(name, StreamingKind::elementwise, elements, 1, 1, 2, 1);
    added.mark(OperatorRole::activation);
  }

  /// Reads x, writes y; backward reads dy and x, writes dx; where it is trained, both are read again.
  void norm(const std::string& name, std::int64_t rows, std::int64_t width) {
    const auto elements = number(rows) * number(width);
    inputs_ = inputs_ || weights_;
    stream(name, StreamingKind::reduction, elements, 1, 1, weights_ ? 3 : 2, 1);
    layer_.recomputation.keep(element_ * elements);
    layer_.parameters += 2.0 * number(width);
  }

  /// `queries` vectors of every image attend to its `keys` vectors.
  void attention(const std::string& name, std::int64_t queries, std::int64_t keys) {
    const ProjectorConfig& p = config_.projector;
    const double all_queries = images_ * number(queries);
    const double all_keys = images_ * number(keys);
    norm(name + " norm", rounded(all_queries), p.hidden);
    linear(name + " query", rounded(all_queries), p.hidden, p.hidden, true);
    linear(name + " key", rounded(all_keys), p.hidden, p.hidden, true);
    linear(name + " value", rounded(all_keys), p.hidden, p.hidden, true);
    Attention core;
    core.batch = rounded(images_);
    core.heads = core.kv_heads = p.heads;
    core.query_length = queries;
    core.key_length = keys;
    core.head_dim = p.hidden / p.heads;
    core.kind = options_.attention;
    const bool standard = options_.attention == AttentionKind::standard;
    layer_.forward.push_back({name, core, precision_, standard ? 4 : 1});
    if (inputs_) {
      core.backward = true;
      layer_.backward.push_back({name + " backward", core, precision_, standard ? 5 : 2});
      const double scores = standard ? 2.0 * images_ * (number(p.heads) * number(queries) * number(keys)) : 0.0;
      layer_.recomputation.keep(element_ * ((2.0 * all_queries + 2.0 * all_keys) * number(p.hidden) + scores));
    }
    linear(name + " output", rounded(all_queries), p.hidden, p.hidden, true);
    stream(name + " residual", StreamingKind::elementwise, all_queries * number(p.hidden), 2, 1, 1, 1);
  }

  const VisionLanguageConfig& config_;
  double images_;
  const BuildOptions& options_;
  Precision precision_;
  Bytes element_;
  bool weights_;  ///< their gradients are computed
  bool inputs_;   ///< the next layer has an input with a gradient
  Layer layer_;
};

}  // namespace

std::int64_t visual_tokens(const VisionLanguageConfig& config) {
  const ProjectorConfig& p = config.projector;
  if (p.kind == ProjectorConfig::Kind::resampler) return p.queries;
  return patches(config.vision) / (p.merge * p.merge);
}

double projector_parameters(const VisionLanguageConfig& config) {
  return build_projector(config, 1.0, 1.0, {}, Gradients::all, true).parameters;
}

Layer build_projector(const VisionLanguageConfig& config, double images, double sequence_tokens,
                      const BuildOptions& options, Gradients gradients, bool input_gradient) {
  ProjectorBuilder build(config, images, options, gradients, input_gradient);
  if (config.projector.kind == ProjectorConfig::Kind::resampler) {
    build.resampler();
  } else {
    for (std::int64_t i = 0; i <= config.projector.inner_layers; ++i) build.mlp();
  }
  build.insertion(sequence_tokens);
  Layer layer = std::move(build).finish();
  if (gradients == Gradients::none) forward_only(layer);
  return layer;
}

}  // namespace foretrain
