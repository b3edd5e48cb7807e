// Which GEMMs are measured: powers of two, sizes beside them, thin and flat shapes, short and long sums,
// batches, transposes, the products of transformers and classifiers, and shapes drawn at random.
#include <algorithm>
#include <array>
#include <cstdint>

#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

namespace {

struct Product {
  std::int64_t m, n, k;
  std::int64_t batch = 1;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false, accumulate_fp32 = false, padded = false;
};

double work(const Product& p) {
  return 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
         static_cast<double>(p.k);
}

/// Bytes of all operands, at most: results may be wider than operands.
double size(const Product& p, double element) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  return static_cast<double>(p.batch) * ((m * k + k * n) * element + m * n * std::max(element, 4.0));
}

/// The largest product of a precision: about 50 ms on the slowest GPU that has it in hardware, so that repetitions stay
/// within seconds.
struct PrecisionRow {
  const char* precision;
  double most_work;
  double element;
  /// Shapes that are drawn, and the largest of these: smaller than the precision allows, since there are many of them.
  int drawn;
  double most_drawn_work;
};
constexpr std::array<PrecisionRow, 7> precisions = {{{"bf16", 9e12, 2, 48, 1.2e12},
                                                     {"fp16", 9e12, 2, 24, 1.2e12},
                                                     {"tf32", 2e12, 4, 24, 6e11},
                                                     {"fp32", 3e11, 4, 24, 1e11},
                                                     {"fp8", 9e12, 1, 24, 1.2e12},
                                                     {"int8", 2.5e12, 1, 12, 1.2e12},
                                                     {"fp64", 4e10, 8, 10, 1.5e10}}};
constexpr double most_memory = 3e9;

class Design {
 public:
  /// Leaves out what is too large for the precision, and what fp8 and int8 cannot do: both operands lie along k, with
  /// sizes in units of 16.
  void add(const Product& p, const std::string& precision, const std::string& family, bool quick = false,
           bool sustained = false) {
    const auto* row = std::ranges::find(precisions, precision, &PrecisionRow::precision);
    if (work(p) > row->most_work || size(p, row->element) > most_memory) return;
    if (row->element < 2 && (!p.transpose_b || p.transpose_a || p.n % 16 != 0 || p.k % 16 != 0 || p.accumulate)) return;
    OperatorSpec spec{
        "matmul",
        {{"m", std::to_string(p.m)}, {"n", std::to_string(p.n)}, {"k", std::to_string(p.k)}, {"precision", precision}}};
    if (p.batch > 1) spec.fields["batch"] = std::to_string(p.batch);
    const std::pair<const char*, bool> flags[] = {{"transpose_a", p.transpose_a},
                                                  {"transpose_b", p.transpose_b},
                                                  {"accumulate", p.accumulate && !p.accumulate_fp32},
                                                  {"accumulate_fp32", p.accumulate_fp32},
                                                  {"padded", p.padded}};
    for (const auto& [key, value] : flags) {
      if (value) spec.fields[key] = "true";
    }
    points_.add(std::move(spec), family, quick, sustained);
  }
  /// In bf16, and every so often in the other precisions of training.
  void spread(const Product& p, const std::string& family) {
    add(p, "bf16", family, count_ % 12 == 0);
    if (count_ % 3 == 0) add(p, "fp16", family);
    if (count_ % 4 == 1) add(p, "tf32", family);
    if (count_ % 4 == 3) add(p, "fp32", family);
    if (count_ % 2 == 0) add(p, "fp8", family);
    ++count_;
  }
  void everywhere(const Product& p, const std::string& family) {
    for (const PrecisionRow& row : precisions) add(p, row.precision, family);
  }
  [[nodiscard]] std::vector<OperatorPoint> finish() const { return points_.finish(); }

 private:
  PointList points_;
  int count_ = 0;
};

Product forward(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .transpose_b = true};
}
Product data_gradient(std::int64_t m, std::int64_t n, std::int64_t k) { return {.m = m, .n = k, .k = n}; }
Product weight_gradient(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = n, .n = k, .k = m, .transpose_a = true};
}

/// The three products of a linear layer.
void linear(Design& design, std::int64_t tokens, std::int64_t outputs, std::int64_t inputs, const char* family) {
  design.spread(forward(tokens, outputs, inputs), family);
  design.spread(data_gradient(tokens, outputs, inputs), family);
  design.spread(weight_gradient(tokens, outputs, inputs), family);
}

/// Points of --quick beside every twelfth of the shapes in bf16: squares and two other products in each precision.
void quick_points(Design& design) {
  for (const char* precision : {"bf16", "fp16", "tf32", "fp32", "fp8"}) {
    for (const std::int64_t side : {512, 1024, 2048, 4096, 8192}) {
      design.add(forward(side, side, side), precision, "square", true);
    }
    design.add(forward(2048, 4096, 1024), precision, "transformer", true);
    design.add(forward(4096, 1024, 4096), precision, "transformer", true);
  }
  for (const char* precision : {"fp64", "int8"}) {
    design.add(forward(1024, 1024, 1024), precision, "square", true);
    design.add(forward(2048, 2048, 2048), precision, "square", true);
  }
}

/// Power-limited points: their times give the energies of an operation.
void sustained(Design& design) {
  for (const char* precision : {"bf16", "fp16", "tf32", "fp32", "fp8"}) {
    const std::int64_t side = precision == std::string("fp32") ? 4096 : 8192;
    design.add(forward(side, side, side), precision, "sustained", true, true);
    design.add(forward(side / 2, side / 2, side), precision, "sustained", false, true);
  }
}

void squares(Design& design) {
  for (std::int64_t side = 16; side <= 16384; side *= 2) design.everywhere(forward(side, side, side), "square");
  for (const std::int64_t side : {192, 384, 768, 1536, 3072, 6144, 12288}) {
    design.spread(forward(side, side, side), "square");
  }
  // One more row of tiles than fits a whole number of waves, or one less, on GPUs of any number of multiprocessors.
  for (const std::int64_t side : {1152, 1280, 1408, 1664, 1792, 2176, 2304, 2560, 2816, 3328, 3840, 4224, 4608, 5376}) {
    design.spread({.m = side, .n = side, .k = 2048}, "waves");
  }
  // Rows that do not begin at multiples of 16 bytes, as they are and padded.
  for (const std::int64_t side : {33, 127, 255, 500, 513, 1000, 1023, 2047, 3001, 4097}) {
    design.spread({.m = side, .n = side, .k = side}, "odd");
    if (side % 8 != 0) design.add({.m = side, .n = side, .k = side, .padded = true}, "bf16", "odd");
  }
}

void thin_and_flat(Design& design) {
  for (const std::int64_t m : {1, 4, 8, 16, 32, 64, 128, 256, 512}) {
    design.spread(forward(m, 4096, 4096), "thin");
    design.spread(forward(m, 1024, 8192), "thin");
    design.spread(data_gradient(m, 4096, 11008), "thin");
  }
  for (const std::int64_t side : {1024, 4096, 8192}) {
    for (const std::int64_t k : {16, 32, 64, 128, 256}) design.spread(forward(side, side, k), "short sum");
  }
  for (const std::int64_t side : {64, 128, 256, 512, 1024}) {
    for (const std::int64_t k : {8192, 16384, 65536}) {
      design.spread({.m = side, .n = side, .k = k, .transpose_a = true}, "long sum");
    }
  }
}

void storage(Design& design) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      design.everywhere({.m = 2048, .n = 2048, .k = 2048, .transpose_a = a, .transpose_b = b}, "storage");
      design.spread({.m = 4096, .n = 1024, .k = 512, .transpose_a = a, .transpose_b = b}, "storage");
      design.spread({.m = 8192, .n = 4096, .k = 4096, .transpose_a = a, .transpose_b = b}, "storage");
    }
  }
  for (const std::int64_t side : {1024, 2048, 4096}) {
    for (const char* precision : {"bf16", "fp16"}) {
      design.add({.m = side, .n = side, .k = 2048, .transpose_a = true, .accumulate = true}, precision, "accumulate");
      design.add({.m = side, .n = side, .k = 2048, .transpose_a = true, .accumulate = true, .accumulate_fp32 = true},
                 precision, "accumulate");
    }
    design.add({.m = side, .n = side, .k = 2048, .transpose_a = true, .accumulate = true}, "fp32", "accumulate");
  }
}

/// Scores and their products with values, forward and backward.
void batches(Design& design) {
  struct Heads {
    std::int64_t batch, sequence, head;
  };
  for (const Heads& h : {Heads{16, 1024, 64}, Heads{96, 128, 64}, Heads{192, 512, 64}, Heads{32, 2048, 128},
                         Heads{64, 1024, 128}, Heads{256, 256, 64}, Heads{384, 197, 64}, Heads{8, 4096, 128}}) {
    design.spread({.m = h.sequence, .n = h.sequence, .k = h.head, .batch = h.batch, .transpose_b = true}, "batch");
    design.spread({.m = h.sequence, .n = h.head, .k = h.sequence, .batch = h.batch}, "batch");
    design.spread({.m = h.sequence, .n = h.head, .k = h.sequence, .batch = h.batch, .transpose_a = true}, "batch");
  }
  for (const std::int64_t batch : {2, 8, 32, 128}) {
    design.spread({.m = 512, .n = 512, .k = 512, .batch = batch}, "batch");
  }
}

void networks(Design& design) {
  for (const std::int64_t hidden : {768, 1024, 1600, 4096, 5120, 8192}) {
    const std::int64_t tokens = hidden <= 1600 ? 8192 : 4096;
    linear(design, tokens, 3 * hidden, hidden, "transformer");
    linear(design, tokens, hidden, hidden, "transformer");
    linear(design, tokens, 4 * hidden, hidden, "transformer");
    design.spread(forward(tokens, hidden, 4 * hidden), "transformer");
    // A slice of tensor parallelism over eight GPUs.
    if (hidden >= 4096) linear(design, 2048, 4 * hidden / 8, hidden, "tensor parallel");
  }
  design.spread(forward(8192, 50257, 768), "vocabulary");
  design.spread(forward(8192, 50304, 768), "vocabulary");
  design.spread(forward(2048, 32000, 4096), "vocabulary");
  design.spread(forward(4096, 30522, 1024), "vocabulary");
  linear(design, 128, 4096, 9216, "classifier");
  linear(design, 128, 4096, 4096, "classifier");
  linear(design, 256, 1000, 2048, "classifier");
  linear(design, 256, 120, 400, "classifier");
  linear(design, 256, 10, 84, "classifier");
}

/// Sizes between 16 and 16384, uniform in their logarithms; a few are odd, most are multiples of 8, some of 64.
void drawn(Design& design) {
  Draw draw(20260101);
  const auto one = [&] {
    const double kind = draw.uniform();
    const std::int64_t unit = kind < 0.1 ? 1 : kind < 0.7 ? 16 : 64;
    Product p{draw.logarithmic(64, 16384, unit), draw.logarithmic(64, 16384, unit), draw.logarithmic(64, 16384, unit)};
    const double stored = draw.uniform();
    p.transpose_b = stored < 0.5;
    p.transpose_a = stored >= 0.75;
    return p;
  };
  for (const PrecisionRow& row : precisions) {
    for (int left = row.drawn; left > 0;) {
      Product p = one();
      if (row.element < 2) p = forward((p.m + 15) / 16 * 16, (p.n + 15) / 16 * 16, (p.k + 15) / 16 * 16);
      if (work(p) > row.most_drawn_work || size(p, 4.0) > most_memory) continue;
      design.add(p, row.precision, "drawn");
      --left;
    }
  }
}

}  // namespace

std::vector<OperatorPoint> gemm_points() {
  Design design;
  quick_points(design);
  sustained(design);
  squares(design);
  thin_and_flat(design);
  storage(design);
  batches(design);
  networks(design);
  drawn(design);
  return design.finish();
}

}  // namespace foretrain::gpu
