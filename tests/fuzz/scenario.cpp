// A scenario is refused with its place, or estimated as a finite time.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/fuzz/harness.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 0);
  fuzz::accepted([&] {
    const Scenario scenario = load_scenario_text(fuzz::text_of(data, size), "fuzz.yaml");
    if (scenario.cluster.nodes > 64) return;  // larger ones take their time, which is no fault
    const Result result = estimate(scenario);
    fuzz::require(std::isfinite(result.time().value()) && result.time() >= Seconds(0.0));
  });
  return 0;
}
