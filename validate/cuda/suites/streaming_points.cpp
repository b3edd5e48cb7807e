// Which operators bound by memory are measured: by how much they read and write, from sizes that the L2 holds to
// hundreds of megabytes.
#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

namespace {

using Fields = std::map<std::string, std::string>;

std::string text(std::int64_t number) { return std::to_string(number); }

void in_precisions(PointList& points, const char* kind, Fields fields, bool quick = false) {
  for (const char* precision : {"bf16", "fp32"}) {
    fields["precision"] = precision;
    points.add({kind, fields}, kind, quick);
  }
}

void elementwise(PointList& points) {
  struct Operands {
    int inputs, outputs;
  };
  for (const Operands& operands : {Operands{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}, {0, 1}}) {
    for (std::int64_t elements = 1 << 14; elements <= 1 << 28; elements *= 4) {
      const bool quick = operands.outputs == 1 && operands.inputs >= 1 && operands.inputs <= 2 &&
                         (elements == 1 << 16 || elements == 1 << 20 || elements == 1 << 24 || elements == 1 << 26);
      in_precisions(
          points, "elementwise",
          {{"elements", text(elements)}, {"inputs", text(operands.inputs)}, {"outputs", text(operands.outputs)}},
          quick);
    }
  }
  // Sizes beside the powers of two: a last block that is not full.
  for (const std::int64_t elements : {100003, 3000000, 38535168, 154140673}) {
    in_precisions(points, "elementwise", {{"elements", text(elements)}, {"inputs", "2"}});
  }
}

}  // namespace

std::vector<OperatorPoint> streaming_points() {
  PointList points;
  elementwise(points);
  for (std::int64_t elements = 1 << 14; elements <= 1 << 28; elements *= 4) {
    in_precisions(points, "reduction", {{"elements", text(elements)}, {"outputs", "0"}}, elements == 1 << 26);
  }
  for (const std::int64_t width : {128, 768, 4096}) {
    for (std::int64_t tokens = 512; tokens <= 65536; tokens *= 2) {
      in_precisions(points, "embedding", {{"tokens", text(tokens)}, {"width", text(width)}, {"vocabulary", "50257"}},
                    tokens == 8192);
    }
  }
  return points.finish();
}

}  // namespace foretrain::gpu
