// Which operators bound by memory are measured: every kind, from sizes that the L2 holds to hundreds of megabytes, in
// the precisions of training.
#include <sstream>

#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

namespace {

using Fields = std::map<std::string, std::string>;

std::string text(std::int64_t number) { return std::to_string(number); }

/// Quick points are every third of a kind in bf16, or where that is not a question, every third.
class Design {
 public:
  void add(const char* kind, Fields fields, bool quick = false) { points_.add({kind, std::move(fields)}, kind, quick); }
  void in_precisions(const char* kind, const Fields& fields, bool quick = false) {
    for (const char* precision : {"bf16", "fp32", "fp16"}) {
      Fields all = fields;
      all["precision"] = precision;
      // fp16 moves what bf16 moves: a few points show that.
      if (precision == std::string("fp16") && !quick) continue;
      add(kind, all, quick && precision != std::string("fp16"));
    }
  }
  /// Forward and backward.
  void both_passes(const char* kind, Fields fields, bool quick = false) {
    in_precisions(kind, fields, quick);
    fields["pass"] = "backward";
    in_precisions(kind, fields, quick);
  }
  [[nodiscard]] std::vector<OperatorPoint> finish() const { return points_.finish(); }

 private:
  PointList points_;
};

void elementwise(Design& design) {
  struct Operands {
    int inputs, outputs;
  };
  for (const Operands& operands : {Operands{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}, {0, 1}}) {
    for (std::int64_t elements = 1 << 14; elements <= 1 << 28; elements *= 4) {
      const bool quick = operands.outputs == 1 && operands.inputs >= 1 && operands.inputs <= 2 &&
                         (elements == 1 << 16 || elements == 1 << 20 || elements == 1 << 24 || elements == 1 << 26);
      design.in_precisions(
          "elementwise",
          {{"elements", text(elements)}, {"inputs", text(operands.inputs)}, {"outputs", text(operands.outputs)}},
          quick);
    }
  }
  // Sizes beside the powers of two: a last block that is not full, numbers that do not fill sixteen bytes.
  for (const std::int64_t elements : {1000, 100003, 3000000, 38535168, 154140673}) {
    design.in_precisions("elementwise", {{"elements", text(elements)}, {"inputs", "2"}});
  }
  for (std::int64_t elements = 1 << 14; elements <= 1 << 28; elements *= 8) {
    design.in_precisions("reduction", {{"elements", text(elements)}, {"outputs", "0"}}, elements == 1 << 26);
  }
  for (const char* size : {"64 KB", "1 MB", "16 MB", "64 MB", "256 MB", "1 GB"}) {
    design.add("copy", {{"size", size}}, size == std::string("256 MB"));
  }
}

/// Of "rows=512 columns=768".
Fields fields_of(const char* text) {
  Fields fields;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    fields[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return fields;
}

void shapes(Design& design) {
#define SHAPE(kind, fields, quick) design.both_passes(#kind, fields_of(fields), quick);
#include "validate/cuda/suites/streaming_shapes.def"
}

void updates(Design& design) {
  for (const char* algorithm : {"sgd", "momentum", "adam", "adamw"}) {
    for (const std::int64_t parameters : {61706, 1000000, 11689512, 25557032, 124439808, 354823168}) {
      const bool quick = algorithm == std::string("adamw") && parameters == 124439808;
      design.in_precisions("optimizer", {{"parameters", text(parameters)}, {"algorithm", algorithm}}, quick);
    }
    design.in_precisions(
        "optimizer", {{"parameters", "25557032"}, {"algorithm", algorithm}, {"tensors", "161"}, {"fused", "false"}});
    design.in_precisions(
        "optimizer", {{"parameters", "124439808"}, {"algorithm", algorithm}, {"tensors", "148"}, {"fused", "false"}});
  }
  for (const std::int64_t parameters : {61706, 11689512, 124439808, 354823168}) {
    design.in_precisions("gradient_clipping", {{"parameters", text(parameters)}}, parameters == 124439808);
  }
  design.in_precisions("gradient_clipping", {{"parameters", "124439808"}, {"tensors", "148"}, {"fused", "false"}});
}

}  // namespace

std::vector<OperatorPoint> streaming_points() {
  Design design;
  elementwise(design);
  shapes(design);
  updates(design);
  return design.finish();
}

}  // namespace foretrain::gpu
