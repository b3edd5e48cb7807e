// Sums of bytes and operations that no integer of 64 bits holds.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("Batches and layers of any size that is accepted take their time and their memory") {
  // 125 million sequences of 1,000 tokens, 10⁸ wide: a tensor has 1.25 · 10¹⁹ elements, more than 2⁶³.
  const Scenario scenario = load_scenario_text(R"(
cluster: { node: dgx-a100-80gb }
workload:
  train:
    model: { family: gpt, layers: 2, hidden: 100000000, heads: 1, vocabulary: 100000, sequence: 1000 }
    global_batch: 1000000000
    micro_batch: 125000000
    precision: bf16
    optimizer: adamw
)",
                                               "large.yaml");
  const Result result = estimate(scenario);
  const TrainResult& train = *result.train();
  // 24 h² parameters of two layers, and six operations for each of them and of the tokens, at 312 TFLOP/s at most
  const double tokens = 125e6 * 1000.0, parameters = 24.0 * 1e8 * 1e8;
  CHECK(train.parameters > parameters);
  CHECK(result.time() > Seconds(6.0 * parameters * tokens / 312e12));
  CHECK(result.time() < Seconds(2.0 * 6.0 * parameters * tokens / 312e12));
  // 34 s·b·h bytes a layer, less what flash attention and others do not keep
  CHECK(train.memory.activations > Bytes(20.0 * tokens * 1e8));
  CHECK(train.memory.total() > train.memory.activations);
}

TEST_CASE("Keys and values that go round between ranks of a context are counted at any size") {
  const Scenario scenario = load_scenario_text(R"(
cluster: { node: dgx-a100-80gb }
workload:
  train:
    model: { family: gpt, layers: 2, hidden: 100000000, heads: 1, vocabulary: 100000, sequence: 1000 }
    global_batch: 125000000
    micro_batch: 125000000
    precision: bf16
    optimizer: adamw
plan: { context: 8 }
)",
                                               "large_context.yaml");
  const Result result = estimate(scenario);
  // Seven eighths of the keys and values of all tokens, each 10⁸ numbers of 2 bytes, at 300 GB/s a GPU at most.
  CHECK(result.time() > Seconds(2.0 * 2.0 * 125e6 * 1000.0 * 1e8 * 7.0 / 8.0 / 300e9));
}
