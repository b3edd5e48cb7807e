#include "model/cost/operator_cost.hpp"

#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

class Shapes {
 public:
  /// Up to `largest`, small ones as often as large ones.
  std::int64_t size(double largest) {
    return static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0.0, std::log(largest))(random_)));
  }
  bool coin() { return random_() % 2 == 0; }

  OperatorWork work() {
    switch (random_() % 4) {
      case 0:
        return Matmul{size(100), size(30000), size(30000), size(30000), coin()};
      case 1: {
        const std::int64_t kernel = 1 + 2 * static_cast<std::int64_t>(random_() % 4), stride = coin() ? 1 : 2;
        const std::int64_t out = size(200);
        return Convolution{.n = size(256),
                           .c = size(1024),
                           .h = out * stride,
                           .w = out * stride,
                           .k = size(1024),
                           .r = kernel,
                           .s = kernel,
                           .p = out,
                           .q = out,
                           .stride = stride,
                           .groups = 1,
                           .pass = static_cast<ConvolutionPass>(random_() % 3)};
      }
      case 2: {
        const std::int64_t heads = size(64), length = size(16000);
        return Attention{size(64), heads,     heads,  length,
                         length,   size(256), coin(), static_cast<AttentionKind>(random_() % 6),
                         coin()};
      }
      default:
        return Streaming{static_cast<StreamingKind>(random_() % 4), Bytes(static_cast<double>(size(1e10))),
                         Bytes(static_cast<double>(size(1e10))), Flops(static_cast<double>(size(1e12))), coin()};
    }
  }

 private:
  std::mt19937 random_{7};
};

}  // namespace

TEST_CASE("Nothing beats the roofline") {
  Shapes shapes;
  for (const char* node :
       {"gce-k80x8", "dgx1-p100", "dgx1-v100-16gb", "t4-x1", "dgx-a100-80gb", "l4-x1", "dgx-h100", "dgx-b200"}) {
    const Machine& m = machine(node);
    for (int i = 0; i < 400; ++i) {
      const Operator op{"", shapes.work(), i % 2 == 0 ? Precision::fp32 : Precision::fp16, 1};
      const OperatorCost cost = operator_cost(op, m.gpu, m.calibration);
      INFO(node << ", operator " << i << " of kind " << op.work.index());
      CHECK(is_finite(cost.device));
      CHECK(cost.device.value() >= roofline(op, m.gpu).value() * (1 - 1e-12));
      CHECK(cost.flops == flops(op));
      CHECK(cost.bytes >= minimum_traffic(op));
      if (!std::holds_alternative<Attention>(op.work)) CHECK(cost.bytes == minimum_traffic(op));
    }
  }
}

TEST_CASE("The roofline of a product is its arithmetic or its traffic, whichever is longer") {
  Gpu gpu;
  gpu.vector_rate[static_cast<std::size_t>(Precision::fp32)] = FlopsPerSecond(1e12);
  gpu.memory_bandwidth = BytesPerSecond(1e9);
  // 2 · 100³ FLOP at 1 TFLOP/s = 2 us; 3 · 100² · 4 B = 120 KB at 1 GB/s = 120 us.
  const Operator op{"", Matmul{.m = 100, .n = 100, .k = 100}, Precision::fp32, 1};
  CHECK(roofline(op, gpu).value() * 1e6 == Approx(120));
  gpu.l2_cache = Bytes(1e6);  // all of it may be in the L2
  CHECK(roofline(op, gpu).value() * 1e6 == Approx(2));
}

TEST_CASE("Every constant has a name of its own, a place of its own and a range that holds the published value") {
  Calibration published = machine("dgx-a100-80gb").calibration;
  std::set<std::string> names;
  std::set<const double*> places;
  for (const ConstantRow& row : calibration_rows()) {
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(places.insert(&row.field(published)).second);
    CHECK(row.minimum < row.maximum);
    CHECK(row.field(published) >= row.minimum);
    CHECK(row.field(published) <= row.maximum);
  }
  // Energies of generations that nobody measured are stated nowhere, and limit nothing.
  const auto unstated = std::ranges::count_if(
      calibration_rows(), [&](const ConstantRow& row) { return row.optional && row.field(published) == 0.0; });
  CHECK(unstated > 0);
  CHECK(published.constants.size() + static_cast<std::size_t>(unstated) == calibration_rows().size());
}
