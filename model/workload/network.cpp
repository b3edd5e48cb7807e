#include "model/workload/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/workload/network_operators.hpp"

namespace foretrain {
namespace {

// More primitive layers than any network has; keeps nested repeats from filling memory.
constexpr int most_primitives = 100'000;

/// Starts a new Layer at the top level; everything else is taken along by the one before it.
bool starts_layer(NetworkLayer::Kind kind) {
  return kind == NetworkLayer::Kind::convolution || kind == NetworkLayer::Kind::linear ||
         kind == NetworkLayer::Kind::residual || kind == NetworkLayer::Kind::branches;
}

bool is_product(const Operator& op) {
  return std::holds_alternative<Matmul>(op.work) || std::holds_alternative<Convolution>(op.work);
}

class NetworkBuilder {
 public:
  explicit NetworkBuilder(PassSettings settings) : settings_(settings) {}

  std::vector<LayerGroup> build(const NetworkConfig& config) {
    const FeatureMap images{config.channels, config.height, config.width};
    const std::size_t input = add_tensor(images, /*needs_gradient=*/false);
    open_layer(input);
    const std::size_t output = walk_top_level(config.layers, input);
    close_layer(output);
    append_loss(config, output);
    return std::move(groups_);
  }

 private:
  // Tensors are referred to by index; views share the storage of what they view.
  struct Tensor {
    FeatureMap shape;
    bool needs_gradient = false;
    std::size_t storage = 0;
  };

  std::size_t add_tensor(const FeatureMap& shape, bool needs_gradient) {
    kept_.push_back(false);
    tensors_.push_back({shape, needs_gradient, kept_.size() - 1});
    return tensors_.size() - 1;
  }

  std::size_t add_view(const FeatureMap& shape, std::size_t of) {
    tensors_.push_back({shape, tensors_[of].needs_gradient, tensors_[of].storage});
    return tensors_.size() - 1;
  }

  [[nodiscard]] Bytes size_of(std::size_t tensor) const { return settings_.activation_bytes(tensors_[tensor].shape); }

  /// Keeps a tensor for the backward pass; it takes memory once.
  void keep(std::size_t tensor) {
    if (!kept_[tensors_[tensor].storage]) {
      kept_[tensors_[tensor].storage] = true;
      layer_.recomputation.keep(size_of(tensor));
    }
  }

  void open_layer(std::size_t input) {
    layer_ = Layer{};
    layer_.splittable = true;
    layer_.recomputation[Recompute::full].kept = size_of(input);
    backward_.clear();
    has_start_ = false;
  }

  void close_layer(std::size_t output) {
    layer_.output = size_of(output);
    for (auto step = backward_.rbegin(); step != backward_.rend(); ++step) {
      layer_.backward.insert(layer_.backward.end(), step->begin(), step->end());
    }
    append_layer(std::move(layer_));
  }

  void append_layer(Layer layer) {
    if (!groups_.empty()) {
      Layer renamed = layer;
      renamed.name = groups_.back().layer.name;
      if (renamed == groups_.back().layer) {
        ++groups_.back().repeat;
        return;
      }
    }
    groups_.push_back({std::move(layer), 1});
  }

  std::size_t walk_top_level(const std::vector<NetworkLayer>& layers, std::size_t input) {
    for (const NetworkLayer& layer : layers) {
      if (layer.kind == NetworkLayer::Kind::repeat) {
        const std::vector<NetworkLayer>& body = repeated_body(layer);
        for (std::int64_t i = 0; i < layer.times; ++i) input = walk_top_level(body, input);
        continue;
      }
      if (starts_layer(layer.kind)) {
        if (has_start_) {
          close_layer(input);
          open_layer(input);
        }
        has_start_ = true;
        layer_.name = fmt::format("{} {}", name(layer.kind), ++started_);
      }
      input = walk_layer(layer, input);
    }
    return input;
  }

  std::size_t walk(const std::vector<NetworkLayer>& layers, std::size_t input) {
    for (const NetworkLayer& layer : layers) input = walk_layer(layer, input);
    return input;
  }

  std::size_t walk_layer(const NetworkLayer& layer, std::size_t input) {
    if (++primitives_ > most_primitives) {
      throw ScenarioError(layer.where, std::string(name(layer.kind)),
                          fmt::format("more than {} layers after repetition", most_primitives), "fewer repetitions");
    }
    const bool behind_norm = std::exchange(behind_norm_, false);
    switch (layer.kind) {
      case NetworkLayer::Kind::residual:
        return walk_residual(layer, input);
      case NetworkLayer::Kind::branches:
        return walk_branches(layer, input);
      case NetworkLayer::Kind::repeat: {
        const std::vector<NetworkLayer>& body = repeated_body(layer);
        for (std::int64_t i = 0; i < layer.times; ++i) input = walk(body, input);
        return input;
      }
      case NetworkLayer::Kind::flatten:
        return add_view(output_shape(layer, tensors_[input].shape), input);
      case NetworkLayer::Kind::relu:
        if (behind_norm) return input;  // the norm's kernel has done it; its mask is a bit for each number
        [[fallthrough]];
      default:
        behind_norm_ = layer.kind == NetworkLayer::Kind::batch_norm && settings_.fuses_norms();
        return walk_primitive(layer, input);
    }
  }

  static const std::vector<NetworkLayer>& repeated_body(const NetworkLayer& layer) {
    if (layer.times < 1 || layer.times > most_primitives) {
      throw ScenarioError(layer.where, "repeat", fmt::format("times is {}", layer.times),
                          fmt::format("an integer from 1 to {}", most_primitives));
    }
    if (layer.bodies.size() != 1 || layer.bodies.front().empty()) {
      throw ScenarioError(layer.where, "repeat", "no body", "body: [ … ] with at least one layer");
    }
    return layer.bodies.front();
  }

  std::size_t walk_primitive(const NetworkLayer& layer, std::size_t input) {
    const Tensor in = tensors_[input];
    const FeatureMap shape = output_shape(layer, in.shape);
    PrimitiveOperators operators = primitive_operators(layer, in.shape, shape, in.needs_gradient, settings_);
    const std::size_t output = add_tensor(shape, in.needs_gradient || operators.parameters > 0);
    if (operators.keeps_input) keep(input);
    if (operators.keeps_output) keep(output);
    layer_.recomputation.keep(operators.kept);
    layer_.parameters += operators.parameters;
    layer_.matrices.insert(layer_.matrices.end(), operators.matrices.begin(), operators.matrices.end());
    // While the layer's backward kernels run, both gradients live beside those that wait for other paths.
    need_workspace(size_of(output) + (in.needs_gradient ? size_of(input) : Bytes()));
    append(layer_.forward, std::move(operators.forward));
    backward_.push_back(std::move(operators.backward));
    return output;
  }

  // Both paths start from the same tensor; their results are added, and so are the gradients that come back.
  std::size_t walk_residual(const NetworkLayer& layer, std::size_t input) {
    if (layer.bodies.empty() || layer.bodies.front().empty()) {
      throw ScenarioError(layer.where, "residual", "no body", "body: [ … ] with at least one layer");
    }
    append_gradient_sum(input, 2);
    waiting_ += size_of(input);
    const std::size_t body = walk(layer.bodies.front(), input);
    const bool summed_by_norm = std::exchange(behind_norm_, false);
    waiting_ -= size_of(input);
    waiting_ += size_of(body);
    const std::size_t shortcut = layer.bodies.size() > 1 ? walk(layer.bodies[1], input) : input;
    waiting_ -= size_of(body);
    const FeatureMap shape = tensors_[body].shape;
    if (shape != tensors_[shortcut].shape) {
      throw ScenarioError(
          layer.where, "residual",
          fmt::format("the body ends with {}, the shortcut with {}", shape.text(), tensors_[shortcut].shape.text()),
          "equal shapes: a conv in the shortcut with the body's channels and stride");
    }
    if (summed_by_norm) {
      layer_.forward.push_back(part_of_norm("residual sum", size_of(shortcut), Bytes(), settings_));
      backward_.push_back({part_of_norm("residual gradient", Bytes(), size_of(shortcut), settings_)});
    } else {
      layer_.forward.push_back(sum_of_tensors("residual sum", shape, 2, settings_));
    }
    behind_norm_ = summed_by_norm;
    return add_tensor(shape, tensors_[body].needs_gradient || tensors_[shortcut].needs_gradient);
  }

  std::size_t walk_branches(const NetworkLayer& layer, std::size_t input) {
    if (layer.bodies.empty()) {
      throw ScenarioError(layer.where, "branches", "no branch", "[ [ … ], [ … ] ] with at least one branch");
    }
    append_gradient_sum(input, static_cast<int>(layer.bodies.size()));
    FeatureMap joined;
    bool needs_gradient = false;
    waiting_ += size_of(input);
    for (const std::vector<NetworkLayer>& body : layer.bodies) {
      const Tensor branch = tensors_[walk(body, input)];
      if (joined.channels == 0) {
        joined = {0, branch.shape.height, branch.shape.width};
      }
      if (branch.shape.height != joined.height || branch.shape.width != joined.width) {
        throw ScenarioError(layer.where, "branches",
                            fmt::format("one branch ends with {}×{}, another with {}×{} (height × width)",
                                        joined.height, joined.width, branch.shape.height, branch.shape.width),
                            "the same height and width in every branch");
      }
      joined.channels += branch.shape.channels;
      needs_gradient = needs_gradient || branch.needs_gradient;
    }
    waiting_ -= size_of(input);
    check_shape(joined, layer.where, name(layer.kind));
    layer_.forward.push_back(concatenation(joined, settings_));
    const std::size_t output = add_tensor(joined, needs_gradient);
    // The branches' gradients are views of the joined one, which therefore lives throughout.
    layer_.workspace += size_of(output);
    return output;
  }

  void append_gradient_sum(std::size_t input, int paths) {
    if (!tensors_[input].needs_gradient || paths < 2) return;
    if (settings_.fuses_norms()) {
      backward_.push_back({part_of_norm("gradient sum", (paths - 1.0) * size_of(input), Bytes(), settings_)});
    } else {
      backward_.push_back({sum_of_tensors("gradient sum", tensors_[input].shape, paths, settings_)});
    }
  }

  void append_loss(const NetworkConfig& config, std::size_t logits) {
    const Tensor& tensor = tensors_[logits];
    if (!tensor.needs_gradient) {
      throw ScenarioError(config.layers.front().where, "layers", "nothing to train", "at least one conv or linear");
    }
    if (!tensor.shape.flat()) {
      throw ScenarioError(config.layers.back().where, std::string(foretrain::name(config.layers.back().kind)),
                          fmt::format("the network ends with {}", tensor.shape.text()),
                          "one number per class: flatten and linear, or global_average_pool, at the end");
    }
    open_layer(logits);
    PrimitiveOperators loss = loss_operators(tensor.shape, settings_);
    layer_.name = "loss";
    layer_.splittable = false;
    layer_.recomputable = false;
    layer_.forward = std::move(loss.forward);
    layer_.backward = std::move(loss.backward);
    layer_.recomputation = {};
    layer_.recomputation.keep(loss.kept);
    layer_.workspace = loss.kept + size_of(logits);
    layer_.output = bytes_per_element(Precision::fp32);
    append_layer(std::move(layer_));
  }

  void need_workspace(Bytes gradients) { layer_.workspace = std::max(layer_.workspace, waiting_ + gradients); }

  static void append(std::vector<Operator>& to, std::vector<Operator> from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }

  PassSettings settings_;
  std::vector<Tensor> tensors_;
  std::vector<bool> kept_;  ///< by storage
  std::vector<LayerGroup> groups_;
  Layer layer_;                                  ///< the one being filled
  std::vector<std::vector<Operator>> backward_;  ///< layer_'s, one entry per forward step, in forward order
  bool behind_norm_ = false;                     ///< a following activation is part of a fused norm
  bool has_start_ = false;                       ///< layer_ has the layer that gives it its name
  Bytes waiting_;                                ///< gradients of other paths that live while this one is walked
  int started_ = 0;
  int primitives_ = 0;
};

}  // namespace

Model build_network(const NetworkConfig& config, std::string name, std::int64_t micro_batch, Precision precision,
                    const TrainerCode& code) {
  if (micro_batch < 1) {
    throw InternalError(fmt::format("build_network: micro_batch is {}", micro_batch));
  }
  if (config.layers.empty()) {
    throw ScenarioError(SourcePosition{}, "layers", "no layers", "at least one conv or linear");
  }
  const FeatureMap images{config.channels, config.height, config.width};
  check_shape(images, config.layers.front().where, "input");

  const PassSettings settings{micro_batch, precision, code};
  Model model;
  model.name = std::move(name);
  model.layers = NetworkBuilder(settings).build(config);
  model.input_bytes_per_sample = images.elements() * bytes_per_element(settings.activation_precision());
  for (const LayerGroup& group : model.layers) {
    model.parameters += group.repeat * group.layer.parameters;
    for (const Operator& op : group.layer.forward) {
      if (is_product(op)) {
        model.forward_flops_per_sample += (group.repeat / number(micro_batch)) * flops(op);
      }
    }
  }
  return model;
}

}  // namespace foretrain
