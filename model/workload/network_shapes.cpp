#include "model/workload/network_operators.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"

namespace foretrain {
namespace {

// Far above any real layer, far below what overflows 64 bits.
constexpr std::int64_t largest_extent = 1 << 30;
constexpr double largest_feature_map = 1e12;

void require(bool condition, const NetworkLayer& layer, std::string got, std::string expected) {
  if (!condition) {
    throw ScenarioError(layer.where, std::string(name(layer.kind)), std::move(got), std::move(expected));
  }
}

void require_extent(const NetworkLayer& layer, std::string_view name, std::int64_t value, std::int64_t minimum) {
  require(value >= minimum && value <= largest_extent, layer, fmt::format("{} is {}", name, value),
          fmt::format("an integer from {} to {}", minimum, largest_extent));
}

std::int64_t window_count(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return (size + 2 * pad - kernel) / stride + 1;
}

FeatureMap slide_window(const NetworkLayer& layer, const FeatureMap& input, std::int64_t channels) {
  require_extent(layer, "kernel", layer.kernel_h, 1);
  require_extent(layer, "kernel", layer.kernel_w, 1);
  require_extent(layer, "stride", layer.stride, 1);
  require_extent(layer, "pad", layer.pad_h, 0);
  require_extent(layer, "pad", layer.pad_w, 0);
  const bool fits = layer.kernel_h <= input.height + 2 * layer.pad_h && layer.kernel_w <= input.width + 2 * layer.pad_w;
  require(fits, layer,
          fmt::format("kernel {}×{} is larger than the input {} padded by {}×{}", layer.kernel_h, layer.kernel_w,
                      input.text(), layer.pad_h, layer.pad_w),
          "a kernel no larger than the padded input: less kernel or stride before it, or more pad");
  return {channels, window_count(input.height, layer.kernel_h, layer.stride, layer.pad_h),
          window_count(input.width, layer.kernel_w, layer.stride, layer.pad_w)};
}

FeatureMap convolve(const NetworkLayer& layer, const FeatureMap& input) {
  require_extent(layer, "out", layer.out, 1);
  require_extent(layer, "groups", layer.groups, 1);
  require(
      input.channels % layer.groups == 0 && layer.out % layer.groups == 0, layer,
      fmt::format("groups {} does not divide {} input and {} output channels", layer.groups, input.channels, layer.out),
      "a divisor of both");
  return slide_window(layer, input, layer.out);
}

FeatureMap pool(const NetworkLayer& layer, const FeatureMap& input) {
  // A window that lies in the padding alone has no value (the rule of PyTorch and cuDNN).
  require(2 * layer.pad_h <= layer.kernel_h && 2 * layer.pad_w <= layer.kernel_w, layer,
          fmt::format("pad {}×{} is more than half the kernel {}×{}", layer.pad_h, layer.pad_w, layer.kernel_h,
                      layer.kernel_w),
          "at most half the kernel");
  return slide_window(layer, input, input.channels);
}

}  // namespace

std::string FeatureMap::text() const { return fmt::format("{}×{}×{}", channels, height, width); }

FeatureMap output_shape(const NetworkLayer& layer, const FeatureMap& input) {
  FeatureMap output = input;
  switch (layer.kind) {
    case NetworkLayer::Kind::convolution:
      output = convolve(layer, input);
      break;
    case NetworkLayer::Kind::max_pool:
    case NetworkLayer::Kind::average_pool:
      output = pool(layer, input);
      break;
    case NetworkLayer::Kind::linear:
      require_extent(layer, "out", layer.out, 1);
      require(input.flat(), layer, fmt::format("the input {} is not flat", input.text()),
              "flatten or global_average_pool before it");
      output = {layer.out, 1, 1};
      break;
    case NetworkLayer::Kind::global_average_pool:
      output = {input.channels, 1, 1};
      break;
    case NetworkLayer::Kind::flatten:
      output = {input.channels * input.height * input.width, 1, 1};
      break;
    default:
      break;  // the others keep the shape
  }
  check_shape(output, layer.where, name(layer.kind));
  return output;
}

void check_shape(const FeatureMap& shape, const SourcePosition& where, std::string_view key) {
  const bool possible = shape.channels >= 1 && shape.height >= 1 && shape.width >= 1;
  if (!possible || shape.elements() > largest_feature_map) {
    throw ScenarioError(where, std::string(key), fmt::format("a feature map of {} for one sample", shape.text()),
                        fmt::format("from 1 to {:g} elements", largest_feature_map));
  }
}

}  // namespace foretrain
