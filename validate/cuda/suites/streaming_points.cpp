// Which operators bound by memory are measured: every kind, from sizes that the L2 holds to hundreds of megabytes, in
// the precisions of training.
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

void rows(Design& design) {
  struct Shape {
    std::int64_t rows, columns;
    bool quick = false;
  };
  for (const Shape& s : {Shape{512, 768},
                         {8192, 768, true},
                         {32768, 768},
                         {4096, 1024},
                         {2048, 4096},
                         {8192, 4096, true},
                         {16384, 8192},
                         {4096, 12288},
                         {200704, 96},
                         {5000, 1000}}) {
    design.both_passes("layer_norm", {{"rows", text(s.rows)}, {"columns", text(s.columns)}}, s.quick);
  }
  for (const Shape& s : {Shape{6144, 128},
                         {98304, 512},
                         {131072, 1024, true},
                         {65536, 2048},
                         {16384, 4096},
                         {512, 1000},
                         {75648, 197},
                         {4096, 16384},
                         {2048, 50257}}) {
    design.both_passes("softmax", {{"rows", text(s.rows)}, {"columns", text(s.columns)}}, s.quick);
  }
  for (const Shape& s :
       {Shape{256, 10}, {256, 1000}, {2048, 30522}, {8192, 50257, true}, {4096, 32000}, {2048, 128256}}) {
    design.both_passes("cross_entropy", {{"rows", text(s.rows)}, {"columns", text(s.columns)}}, s.quick);
  }
}

void images(Design& design) {
  struct Shape {
    std::int64_t batch, channels, side;
    bool quick = false;
  };
  for (const Shape& s : {Shape{64, 64, 112},
                         {64, 64, 56, true},
                         {64, 256, 56},
                         {128, 512, 28},
                         {128, 1024, 14, true},
                         {256, 2048, 7},
                         {256, 64, 32},
                         {128, 6, 28},
                         {32, 192, 35}}) {
    design.both_passes(
        "batch_norm",
        {{"batch", text(s.batch)}, {"channels", text(s.channels)}, {"height", text(s.side)}, {"width", text(s.side)}},
        s.quick);
  }
  struct Window {
    Shape shape;
    int kernel, stride, pad;
    const char* function;
  };
  for (const Window& w : {Window{{64, 64, 112, true}, 3, 2, 1, "max"},
                          {{128, 64, 55}, 3, 2, 0, "max"},
                          {{128, 256, 27}, 3, 2, 0, "max"},
                          {{64, 128, 112}, 2, 2, 0, "max"},
                          {{256, 6, 28}, 2, 2, 0, "average"},
                          {{256, 2048, 7, true}, 7, 7, 0, "average"},
                          {{32, 288, 35}, 3, 1, 1, "average"}}) {
    design.both_passes("pooling",
                       {{"batch", text(w.shape.batch)},
                        {"channels", text(w.shape.channels)},
                        {"height", text(w.shape.side)},
                        {"width", text(w.shape.side)},
                        {"kernel", text(w.kernel)},
                        {"stride", text(w.stride)},
                        {"pad", text(w.pad)},
                        {"function", w.function}},
                       w.shape.quick);
  }
}

void tables_and_updates(Design& design) {
  struct Table {
    std::int64_t tokens, width, vocabulary;
    bool quick = false;
  };
  for (const Table& t : {Table{512, 768, 30522},
                         {8192, 768, 50257, true},
                         {32768, 768, 50257},
                         {4096, 4096, 32000},
                         {8192, 4096, 128256},
                         {65536, 128, 1000000}}) {
    design.both_passes("embedding",
                       {{"tokens", text(t.tokens)}, {"width", text(t.width)}, {"vocabulary", text(t.vocabulary)}},
                       t.quick);
  }
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
  rows(design);
  images(design);
  tables_and_updates(design);
  return design.finish();
}

}  // namespace foretrain::gpu
