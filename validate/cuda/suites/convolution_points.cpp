// Which convolutions are measured: the layers of well-known networks, each forward and with both gradients.
#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

namespace {

struct Layer {
  const char* network;
  std::int64_t batch, channels, side, filters;
  const char* kernel;
  std::int64_t stride;
  const char* pad;
  std::int64_t groups = 1;
  bool quick = false;
};

constexpr Layer layers[] = {
#define LAYER(...) {__VA_ARGS__},
#include "validate/cuda/suites/convolution_layers.def"
};

void add(PointList& points, const Layer& layer, const char* precision, bool quick) {
  OperatorSpec spec{"convolution",
                    {{"batch", std::to_string(layer.batch)},
                     {"channels", std::to_string(layer.channels)},
                     {"height", std::to_string(layer.side)},
                     {"width", std::to_string(layer.side)},
                     {"filters", std::to_string(layer.filters)},
                     {"kernel", layer.kernel},
                     {"stride", std::to_string(layer.stride)},
                     {"pad", layer.pad},
                     {"precision", precision}}};
  if (layer.groups > 1) spec.fields["groups"] = std::to_string(layer.groups);
  for (const char* pass : {"forward", "data_gradient", "weight_gradient"}) {
    // Training does not need the gradient of the images.
    if (pass == std::string("data_gradient") && layer.channels <= 3) continue;
    spec.fields["pass"] = pass;
    points.add(spec, layer.network, quick);
  }
}

}  // namespace

std::vector<OperatorPoint> convolution_points() {
  PointList points;
  int count = 0;
  for (const Layer& layer : layers) {
    add(points, layer, "bf16", layer.quick);
    if (layer.quick || count % 4 == 1) add(points, layer, "tf32", false);
    if (layer.quick || count % 4 == 3) add(points, layer, "fp32", layer.quick && count % 2 == 0);
    if (count % 4 == 2) add(points, layer, "fp16", false);
    ++count;
  }
  return points.finish();
}

}  // namespace foretrain::gpu
