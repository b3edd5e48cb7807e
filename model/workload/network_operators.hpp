// Kernels of each primitive layer of a network in its forward and backward pass, and the tensors kept in between.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/number.hpp"
#include "model/hardware/precision.hpp"
#include "model/workload/model.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/operator.hpp"
#include "model/workload/trainer_code.hpp"

namespace foretrain {

/// One sample's activation: channels × height × width (features × 1 × 1 where it is flat).
struct FeatureMap {
  std::int64_t channels = 0, height = 1, width = 1;

  [[nodiscard]] double elements() const { return number(channels) * number(height) * number(width); }
  [[nodiscard]] bool flat() const { return height == 1 && width == 1; }
  [[nodiscard]] std::string text() const;  ///< "64 × 56 × 56"
  bool operator==(const FeatureMap&) const = default;
};

/// The shape after a layer that is neither residual, branches nor repeat.
/// Windows: (size + 2·pad − kernel) / stride + 1, rounded down.
/// Throws ScenarioError at layer.where when the layer cannot take such an input.
FeatureMap output_shape(const NetworkLayer& layer, const FeatureMap& input);

/// Throws ScenarioError when a sample's feature map has no element, or more than any device can hold.
void check_shape(const FeatureMap& shape, const SourcePosition& where, std::string_view key);

/// Settings of all operators of a pass.
struct PassSettings {
  std::int64_t batch = 1;  ///< samples in the micro-batch
  Precision precision = Precision::fp32;
  TrainerCode code = {};

  /// Batch norms are one kernel with the activation and the residual sum behind them.
  [[nodiscard]] bool fuses_norms() const { return code.fusions.has(Fusion::norm); }
  /// Number format of activations and their gradients: the precision's own, bf16 for fp8.
  [[nodiscard]] Precision activation_precision() const { return storage_precision(precision); }
  /// Activations of the whole micro-batch.
  [[nodiscard]] Bytes activation_bytes(const FeatureMap& shape) const {
    return number(batch) * shape.elements() * bytes_per_element(activation_precision());
  }
  /// Trainable numbers are fp32 and cast to the activations' shorter format in each pass.
  [[nodiscard]] bool casts_weights() const {
    return bytes_per_element(activation_precision()) < bytes_per_element(Precision::fp32);
  }
};

/// Operators of a primitive layer, in the order in which they are launched.
struct PrimitiveOperators {
  std::vector<Operator> forward;
  std::vector<Operator> backward;
  double parameters = 0.0;             ///< trainable numbers
  std::vector<WeightMatrix> matrices;  ///< the matrices among them
  bool keeps_input = false;            ///< the backward pass reads the layer's input
  bool keeps_output = false;           ///< the backward pass reads the layer's output
  Bytes kept;                          ///< anything else it reads: masks, indices, statistics
};

/// Operators of a layer that is neither residual, branches nor repeat. `input_gradient`: whether anything before the
/// layer is trained, so that its input needs a gradient.
PrimitiveOperators primitive_operators(const NetworkLayer& layer, const FeatureMap& input, const FeatureMap& output,
                                       bool input_gradient, const PassSettings& settings);

/// Sum of `terms` tensors of one shape, pair by pair: where paths of a residual block meet, and where their gradients
/// do.
Operator sum_of_tensors(std::string name, const FeatureMap& shape, int terms, const PassSettings& settings);

/// Traffic of kernels beside their own tensors where they add. A batch norm reads a residual's other path, and in the
/// backward pass writes its gradient, to which a convolution adds what it computes. It launches nothing.
Operator part_of_norm(std::string name, Bytes read, Bytes written, const PassSettings& settings);

/// Concatenation along channels: a copy. Its backward pass only makes views.
Operator concatenation(const FeatureMap& output, const PassSettings& settings);

/// Softmax with cross-entropy over `logits`, in fp32 (autocast's rule), for integer labels.
PrimitiveOperators loss_operators(const FeatureMap& logits, const PassSettings& settings);

}  // namespace foretrain
