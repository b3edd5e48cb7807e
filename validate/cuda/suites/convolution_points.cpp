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
    // ResNet-50 (He et al., 2016, table 1), 64 images
    {"resnet-50", 64, 3, 224, 64, "7", 2, "3", 1, true},
    {"resnet-50", 64, 64, 56, 64, "1", 1, "0"},
    {"resnet-50", 64, 64, 56, 64, "3", 1, "1", 1, true},
    {"resnet-50", 64, 64, 56, 256, "1", 1, "0", 1, true},
    {"resnet-50", 64, 256, 56, 64, "1", 1, "0"},
    {"resnet-50", 64, 256, 56, 128, "1", 1, "0"},
    {"resnet-50", 64, 128, 56, 128, "3", 2, "1"},
    {"resnet-50", 64, 256, 56, 512, "1", 2, "0"},
    {"resnet-50", 64, 128, 28, 512, "1", 1, "0"},
    {"resnet-50", 64, 512, 28, 128, "1", 1, "0"},
    {"resnet-50", 64, 128, 28, 128, "3", 1, "1", 1, true},
    {"resnet-50", 64, 512, 28, 256, "1", 1, "0"},
    {"resnet-50", 64, 256, 28, 256, "3", 2, "1"},
    {"resnet-50", 64, 512, 28, 1024, "1", 2, "0"},
    {"resnet-50", 64, 256, 14, 1024, "1", 1, "0"},
    {"resnet-50", 64, 1024, 14, 256, "1", 1, "0"},
    {"resnet-50", 64, 256, 14, 256, "3", 1, "1"},
    {"resnet-50", 64, 512, 14, 512, "3", 2, "1"},
    {"resnet-50", 64, 1024, 14, 2048, "1", 2, "0"},
    {"resnet-50", 64, 512, 7, 2048, "1", 1, "0"},
    {"resnet-50", 64, 2048, 7, 512, "1", 1, "0", 1, true},
    {"resnet-50", 64, 512, 7, 512, "3", 1, "1"},
    // The same at other batches
    {"resnet-50", 256, 64, 56, 64, "3", 1, "1"},
    {"resnet-50", 256, 256, 14, 256, "3", 1, "1"},
    {"resnet-50", 16, 256, 14, 256, "3", 1, "1"},
    {"resnet-50", 8, 512, 7, 512, "3", 1, "1"},
    // ResNet-18 on 32 x 32 images, with a stem of 3 x 3
    {"resnet-18", 128, 3, 32, 64, "3", 1, "1"},
    {"resnet-18", 128, 64, 32, 64, "3", 1, "1", 1, true},
    {"resnet-18", 128, 128, 16, 128, "3", 1, "1"},
    {"resnet-18", 128, 256, 8, 256, "3", 1, "1"},
    {"resnet-18", 128, 512, 4, 512, "3", 1, "1"},
    // LeNet-5 and AlexNet
    {"lenet", 256, 1, 28, 6, "5", 1, "2"},
    {"lenet", 256, 6, 14, 16, "5", 1, "0"},
    {"alexnet", 128, 3, 224, 64, "11", 4, "2"},
    {"alexnet", 128, 64, 27, 192, "5", 1, "2"},
    {"alexnet", 128, 192, 13, 384, "3", 1, "1"},
    {"alexnet", 128, 384, 13, 256, "3", 1, "1"},
    {"alexnet", 128, 256, 13, 256, "3", 1, "1"},
    // VGG-16
    {"vgg-16", 32, 3, 224, 64, "3", 1, "1"},
    {"vgg-16", 32, 64, 224, 64, "3", 1, "1"},
    {"vgg-16", 32, 64, 112, 128, "3", 1, "1"},
    {"vgg-16", 32, 128, 56, 256, "3", 1, "1"},
    {"vgg-16", 32, 256, 56, 256, "3", 1, "1"},
    {"vgg-16", 32, 512, 28, 512, "3", 1, "1"},
    {"vgg-16", 32, 512, 14, 512, "3", 1, "1"},
    // Inception v3, with kernels longer than wide
    {"inception-v3", 32, 3, 299, 32, "3", 2, "0"},
    {"inception-v3", 32, 80, 73, 192, "3", 1, "0"},
    {"inception-v3", 32, 288, 35, 384, "3", 2, "0"},
    {"inception-v3", 32, 48, 35, 64, "5", 1, "2"},
    {"inception-v3", 32, 768, 17, 192, "1", 1, "0"},
    {"inception-v3", 32, 128, 17, 128, "[1, 7]", 1, "[0, 3]"},
    {"inception-v3", 32, 128, 17, 192, "[7, 1]", 1, "[3, 0]"},
    {"inception-v3", 32, 1280, 8, 320, "1", 1, "0"},
    {"inception-v3", 32, 384, 8, 384, "[1, 3]", 1, "[0, 1]"},
    // Depthwise (MobileNet) and grouped (ResNeXt-50 32x4d); patches of a vision transformer
    {"mobilenet", 64, 32, 112, 32, "3", 1, "1", 32},
    {"mobilenet", 64, 128, 56, 128, "3", 1, "1", 128, true},
    {"mobilenet", 64, 512, 14, 512, "3", 1, "1", 512},
    {"resnext-50", 64, 128, 56, 128, "3", 1, "1", 32},
    {"resnext-50", 64, 512, 14, 512, "3", 1, "1", 32},
    {"vit", 64, 3, 224, 768, "16", 16, "0"}};

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
