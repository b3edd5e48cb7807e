// R7: storage and data loading. The exercise's numbers, by every executor, and what each remedy buys.
#include "tests/sim/predicted.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

double stall(const std::string& scenario, Fidelity fidelity) {
  return predicted(scenario, fidelity).train()->breakdown.data_stall.value() * 1e3;
}

}  // namespace

TEST_CASE("R7: 140 ms of loading per batch are brought under 40 ms, stage by stage") {
  for (const Fidelity fidelity : all_fidelities) {
    // 1. Read 50, decode 30, preprocess 40, copy 20 ms after each other and after the step.
    CHECK(stall("loading-1-serial", fidelity) == Approx(140.0));
    const double step = milliseconds("loading-1-serial", fidelity) - 140.0;
    REQUIRE(step > 20.0);  // the rest of the exercise is about a step of some 34 ms
    REQUIRE(step < 37.5);
    // 2. One worker beside the step: 50 + 30 + 40 ms.
    CHECK(milliseconds("loading-2-one-worker", fidelity) == Approx(120.0));
    // 3. Four workers: 30 ms a batch, so that the step is followed by the copy that blocks it.
    CHECK(milliseconds("loading-3-four-workers", fidelity) == Approx(step + 20.0));
    // 4. Copies beside the step: 30 ms of loading and 20 ms of copying are both hidden.
    CHECK(milliseconds("loading-4-pinned", fidelity) == Approx(std::max(step, 30.0)));
    CHECK(milliseconds("loading-4-pinned", fidelity) < 40.0);
    // 5. Two workers: 60 ms. 6. Reading in 5 ms: (5 + 30 + 40) / 2. 7. No decoding on the CPU: (5 + 40) / 2 = 22.5 ms,
    // and 3 ms of the device.
    CHECK(milliseconds("loading-5-two-workers", fidelity) == Approx(60.0));
    CHECK(milliseconds("loading-6-archives", fidelity) == Approx(37.5));
    CHECK(milliseconds("loading-7-gpu-decode", fidelity) == Approx(step + 3.0));
    CHECK(stall("loading-7-gpu-decode", fidelity) == Approx(0.0).margin(1e-6));
  }
}

TEST_CASE("R7: the best number of workers lies in between") {
  std::vector<double> times;
  for (int workers = 1; workers <= 16; ++workers) {
    times.push_back(milliseconds("loading-workers", Fidelity::estimate,
                                 {"workload.train.loader.workers=" + std::to_string(workers)}));
  }
  const auto best = std::ranges::min_element(times) - times.begin() + 1;
  CHECK(best > 2);
  CHECK(best < 12);
  CHECK(times.front() > 2.0 * times[static_cast<std::size_t>(best - 1)]);
  CHECK(times.back() > 1.05 * times[static_cast<std::size_t>(best - 1)]);
}

TEST_CASE("R7: deeper queues smooth samples of unequal size") {
  for (const Fidelity fidelity : all_fidelities) {
    // Four workers, 10 ms a sample: 2.5 ms if all were equal. Unequal ones wait for each other, the less the deeper.
    const double shallow = milliseconds("loading-prefetch", fidelity, {"workload.operator.prefetch=1"});
    const double deep = milliseconds("loading-prefetch", fidelity, {"workload.operator.prefetch=16"});
    CHECK(shallow > 1.2 * deep);
    CHECK(deep > 2.4);
    CHECK(deep < 3.0);
  }
}
