// Which operators bound by memory are measured: by how much they read and write, from sizes that the L2 holds to
// hundreds of megabytes.
#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

namespace {

using Fields = std::map<std::string, std::string>;

void in_precisions(PointList& points, const char* kind, Fields fields, bool quick = false) {
  for (const char* precision : {"bf16", "fp32"}) {
    fields["precision"] = precision;
    points.add({kind, fields}, kind, quick);
  }
}

void elementwise(PointList& points) {
  for (const auto& [inputs, outputs] : {std::pair(1, 1), {2, 1}, {3, 1}, {1, 2}, {2, 2}, {0, 1}}) {
    for (std::int64_t elements = 1 << 14; elements <= 1 << 28; elements *= 4) {
      const bool quick = outputs == 1 && inputs >= 1 && inputs <= 2 &&
                         (elements == 1 << 16 || elements == 1 << 20 || elements == 1 << 24 || elements == 1 << 26);
      in_precisions(points, "elementwise",
                    {{"elements", std::to_string(elements)},
                     {"inputs", std::to_string(inputs)},
                     {"outputs", std::to_string(outputs)}},
                    quick);
    }
  }
  // Sizes beside the powers of two: a last block that is not full.
  for (const std::int64_t elements : {100003, 3000000, 38535168, 154140673}) {
    in_precisions(points, "elementwise", {{"elements", std::to_string(elements)}, {"inputs", "2"}});
  }
}

}  // namespace

std::vector<OperatorPoint> streaming_points() {
  PointList points;
  elementwise(points);
  for (std::int64_t elements = 1 << 14; elements <= 1 << 28; elements *= 4) {
    in_precisions(points, "reduction", {{"elements", std::to_string(elements)}, {"outputs", "0"}}, elements == 1 << 26);
  }
  for (const std::int64_t width : {128, 768, 4096}) {
    for (std::int64_t tokens = 512; tokens <= 65536; tokens *= 2) {
      in_precisions(points, "embedding",
                    {{"tokens", std::to_string(tokens)}, {"width", std::to_string(width)}, {"vocabulary", "50257"}},
                    tokens == 8192);
    }
  }
  return points.finish();
}

}  // namespace foretrain::gpu
