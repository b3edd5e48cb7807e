// A scenario is refused with its place, or estimated as finite times and amounts that are not negative, of which the
// parts are no more than the whole.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/fuzz/harness.hpp"

using namespace foretrain;

namespace {

void require_amount(double value) { fuzz::require(std::isfinite(value) && value >= 0.0); }

void check(const TrainResult& train) {
  const MemoryFootprint& memory = train.memory;
  for (const Bytes part : {memory.weights, memory.gradients, memory.optimizer, memory.activations, memory.workspace}) {
    require_amount(part.value());
    fuzz::require(part <= memory.total());
  }
  for (const double rate : {train.samples_per_second, train.tokens_per_second, train.mfu, train.parameters}) {
    require_amount(rate);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 0);
  fuzz::accepted([&] {
    const Scenario scenario = load_scenario_text(fuzz::text_of(data, size), "fuzz.yaml");
    if (scenario.cluster.nodes > 64) return;  // larger ones take their time, which is no fault
    const Result result = estimate(scenario);
    require_amount(result.time().value());
    if (const auto* train = std::get_if<TrainResult>(&result.work)) check(*train);
  });
  return 0;
}
