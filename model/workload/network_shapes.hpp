// Shapes of feature maps, and how each primitive layer changes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/number.hpp"
#include "model/workload/model_config.hpp"

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

}  // namespace foretrain
