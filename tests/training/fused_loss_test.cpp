// A fused cross-entropy shortens the step, not memory alone.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("a fused loss shortens the step by the traffic that it spares") {
  const Scenario eager = load_scenario("fit-fsdp-llama3-8b", {});
  const Scenario fused = load_scenario("fit-fsdp-llama3-8b", {"workload.train.loss=fused"});
  // A logit of 2 bytes, widened to 4: forward 2 + 4 + 4 read and 4 + 4 written, backward 4 + 8 + 4 read less the 4 that
  // the first kernel only writes, so 12 read and 4 + 4 + 2 written: 40 bytes. Fused: twice 2 read and 2 written, then 2
  // and 2: 10. There are 16,384 tokens and 128,256 of them for each.
  const double spared = 30.0 * 16384.0 * 128256.0;
  const StreamingConstants& constants = eager.calibration.streaming;
  const double rate = eager.cluster.node.gpu.memory_bandwidth.value() * constants.bandwidth_efficiency;
  const double shorter = estimate(eager).time().value() - estimate(fused).time().value();
  CHECK(shorter / (spared / rate * eager.calibration.step.kernel_stretch) == Approx(1.0).epsilon(0.05));
}
