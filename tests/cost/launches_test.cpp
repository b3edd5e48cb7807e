#include "model/cost/launches.hpp"

#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;

namespace {

// y = relu(norm(x)) twice, 64 rows of 1,000 numbers in fp32: a result has 64 · 1000 · 4 B = 256 kB.
std::vector<Operator> two_layers() {
  const Bytes size(64 * 1000 * 4.0);
  const Operator norm{"norm", Streaming{StreamingKind::reduction, size, size, Flops(64e3), false}, Precision::fp32, 1};
  const Operator relu{"relu", Streaming{StreamingKind::elementwise, size, size, Flops(64e3), true}, Precision::fp32, 1};
  return {norm, relu, norm, relu};
}

const test::Machine& machine() { return test::machine("v100-workstation-x2"); }
const HostConstants& host() { return machine().calibration.host; }

LaunchPlan plan(const std::vector<Operator>& ops, ExecutionMode mode, bool constant_weights = true) {
  return plan_launches(ops, mode, constant_weights, machine().gpu, machine().calibration);
}

}  // namespace

TEST_CASE("eager execution launches every kernel and writes every result") {
  const LaunchPlan eager = plan(two_layers(), ExecutionMode::eager);
  CHECK(eager.launches.size() == 4);
  CHECK(eager.fused == 0);
  CHECK(eager.host.value() == Approx(4 * host().dispatch_us * 1e-6));
  // Three of the four results are read by further kernels only.
  CHECK(eager.intermediates.value() == Approx(3 * 256e3));
}

TEST_CASE("compiled code does elementwise work in the kernel before it") {
  const LaunchPlan eager = plan(two_layers(), ExecutionMode::eager);
  const LaunchPlan compiled = plan(two_layers(), ExecutionMode::compiled);
  REQUIRE(compiled.launches.size() == 2);
  CHECK(compiled.launches[0].name == "norm + relu");
  CHECK(compiled.fused == 2);
  CHECK(compiled.host.value() == Approx(2 * host().compiled_dispatch_us * 1e-6));
  // One result stands between the two kernels. A relu in its producer's kernel adds its arithmetic, 64,000 operations,
  // and neither traffic nor a launch.
  CHECK(compiled.intermediates.value() == Approx(256e3));
  const double relu = 64e3 / machine().gpu.matrix_rate(Precision::fp32).value();
  CHECK(compiled.device.value() ==
        Approx(eager.launches[0].device.value() + eager.launches[2].device.value() + 2 * relu));
}

TEST_CASE("compiled code leaves a product to its library, whose result the elementwise work behind it reads") {
  std::vector<Operator> ops = two_layers();
  ops[0] = {"product", Matmul{.m = 64, .n = 1000, .k = 1000}, Precision::fp32, 1};
  const LaunchPlan compiled = plan(ops, ExecutionMode::compiled);
  REQUIRE(compiled.launches.size() == 3);
  CHECK(compiled.launches[1].name == "relu");
  CHECK(compiled.launches[2].name == "norm + relu");
  CHECK(compiled.launches[1].device.value() == Approx(plan(ops, ExecutionMode::eager).launches[1].device.value()));
}

TEST_CASE("nothing is fused into a kernel that is not there") {
  // The list begins with an elementwise operator: it needs a launch of its own.
  std::vector<Operator> ops = two_layers();
  std::swap(ops[0], ops[1]);
  CHECK(plan(ops, ExecutionMode::compiled).launches.size() == 3);
}

TEST_CASE("constant folding: what depends on weights alone is done once, unless they are trained") {
  std::vector<Operator> ops = two_layers();
  Operator cast{"cast weights", Streaming{StreamingKind::elementwise, Bytes(4e6), Bytes(2e6), Flops(), false},
                Precision::fp16, 1};
  cast.reads_weights_only = true;
  ops.insert(ops.begin(), cast);
  CHECK(plan(ops, ExecutionMode::eager).launches.size() == 5);
  CHECK(plan(ops, ExecutionMode::compiled).folded == 1);
  CHECK(plan(ops, ExecutionMode::compiled).launches.size() == 2);
  CHECK(plan(ops, ExecutionMode::compiled, false).folded == 0);
  CHECK(plan(ops, ExecutionMode::compiled, false).launches.size() == 3);
}

TEST_CASE("elementwise work behind folded weights joins what was launched before these, not the weights") {
  // product, an operator on weights alone, relu: the product's library does no relu, and folded weights launch nothing.
  std::vector<Operator> ops = two_layers();
  Operator weights = ops[1];
  weights.reads_weights_only = true;
  ops = {{"product", Matmul{.m = 64, .n = 1000, .k = 1000}, Precision::fp32, 1}, weights, ops[1]};
  const LaunchPlan compiled = plan(ops, ExecutionMode::compiled);
  CHECK(compiled.folded == 1);
  CHECK(compiled.fused == 0);
  CHECK(compiled.launches.size() == 2);
}

TEST_CASE("a CUDA graph has the kernels of eager execution and one launch") {
  const LaunchPlan eager = plan(two_layers(), ExecutionMode::eager);
  const LaunchPlan graph = plan(two_layers(), ExecutionMode::cuda_graph);
  CHECK(graph.launches.size() == 4);
  CHECK(graph.host.value() == Approx(host().graph_launch_us * 1e-6));
  // Nothing lies between its four kernels, where launches leave a gap.
  CHECK((eager.device - graph.device).value() == Approx(4 * host().launch_gap_us * 1e-6));
  CHECK(graph.intermediates == eager.intermediates);
}

TEST_CASE("the totals of a list are those of its launches") {
  for (const ExecutionMode mode : {ExecutionMode::eager, ExecutionMode::compiled, ExecutionMode::cuda_graph}) {
    const LaunchPlan list = plan(two_layers(), mode);
    const LaunchTotals totals =
        launch_totals(two_layers(), mode, GraphedParts::none, machine().gpu, machine().calibration);
    CHECK(totals.device.value() == Approx(list.device.value()));
    CHECK(totals.kernels == static_cast<int>(list.launches.size()));
    // A graph holds more than one layer: its launch is counted once, elsewhere.
    if (mode != ExecutionMode::cuda_graph) CHECK(totals.host.value() == Approx(list.host.value()));
  }
}

TEST_CASE("what is fused uses the memory alone: a kernel's share of the bandwidth is the mean over its time") {
  // A sum with ten inputs: nine of 256 kB that its producer's kernel has to read, which computes for 64 us.
  const Bytes size(64 * 1000 * 4.0);
  const Operator norm{"norm", Streaming{StreamingKind::reduction, size, size, Flops(1e9), false}, Precision::fp32, 1};
  const Operator sum{"sum", Streaming{StreamingKind::elementwise, size * 10.0, size, Flops(64e3), true},
                     Precision::fp32, 1};
  const Launch alone = plan({norm}, ExecutionMode::compiled).launches.front();
  const Launch fused = plan({norm, sum}, ExecutionMode::compiled).launches.front();
  const Seconds added = fused.device - alone.device;
  REQUIRE(added > 0.01 * alone.device);
  REQUIRE(alone.share.bandwidth < 0.9);
  const Seconds of_memory = alone.share.bandwidth * alone.device + added;
  CHECK(fused.share.bandwidth == Approx(of_memory / fused.device));
}
