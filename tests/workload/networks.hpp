// Networks built in code, and their operators by name.
#pragma once

#include "model/workload/network.hpp"
#include "tests/workload/models.hpp"

namespace foretrain::test {

using Kind = NetworkLayer::Kind;

inline NetworkLayer simple(Kind kind) {
  NetworkLayer layer;
  layer.kind = kind;
  return layer;
}
inline NetworkLayer conv(std::int64_t out, std::int64_t kernel, std::int64_t stride = 1, std::int64_t pad = 0,
                         bool bias = false) {
  NetworkLayer layer = simple(Kind::convolution);
  layer.out = out;
  layer.kernel_h = layer.kernel_w = kernel;
  layer.stride = stride;
  layer.pad_h = layer.pad_w = pad;
  layer.bias = bias;
  return layer;
}
inline NetworkLayer pool(Kind kind, std::int64_t kernel, std::int64_t stride, std::int64_t pad = 0) {
  NetworkLayer layer = conv(0, kernel, stride, pad);
  layer.kind = kind;
  return layer;
}
inline NetworkLayer linear(std::int64_t out) {
  NetworkLayer layer = simple(Kind::linear);
  layer.out = out;
  return layer;
}
inline NetworkLayer composite(Kind kind, std::vector<std::vector<NetworkLayer>> bodies, std::int64_t times = 1) {
  NetworkLayer layer = simple(kind);
  layer.bodies = std::move(bodies);
  layer.times = times;
  return layer;
}

inline const NetworkLayer relu = simple(Kind::relu);
inline const NetworkLayer norm = simple(Kind::batch_norm);
inline const NetworkLayer flatten = simple(Kind::flatten);
inline const NetworkLayer global_pool = simple(Kind::global_average_pool);

inline Model build(std::vector<NetworkLayer> layers, std::int64_t channels, std::int64_t size, std::int64_t batch = 1,
                   Precision precision = Precision::fp32) {
  return build_network({channels, size, size, std::move(layers)}, "net", batch, precision);
}

}  // namespace foretrain::test
