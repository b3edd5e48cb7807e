// Sums of bytes and operations that no integer of 64 bits holds.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// A micro-batch of 125 million sequences of 1,000 tokens, 10⁸ wide: a tensor has 1.25 · 10¹⁹ elements, more than 2⁶³.
Result estimate_large(const char* batch, const char* plan) {
  return estimate(load_scenario_text(fmt::format(R"(
cluster: {{ node: dgx-a100-80gb }}
workload:
  train:
    model: {{ family: gpt, layers: 2, hidden: 100000000, heads: 1, vocabulary: 100000, sequence: 1000 }}
    global_batch: {}
    micro_batch: 125000000
    precision: bf16
    optimizer: adamw
plan: {}
)",
                                                 batch, plan),
                                     "large.yaml"));
}

constexpr double tokens = 125e6 * 1000.0;

}  // namespace

TEST_CASE("Batches and layers of any size that is accepted take their time and their memory") {
  const Result result = estimate_large("1000000000", "{ data: 8 }");
  const TrainResult& train = *result.train();
  // 24 h² parameters of two layers, and six operations for each of them and of the tokens, at 312 TFLOP/s at most
  const double parameters = 24.0 * 1e8 * 1e8;
  CHECK(train.parameters > parameters);
  CHECK(result.time() > Seconds(6.0 * parameters * tokens / 312e12));
  CHECK(result.time() < Seconds(2.0 * 6.0 * parameters * tokens / 312e12));
  // 34 s·b·h bytes a layer, less what flash attention and others do not keep
  CHECK(train.memory.activations > Bytes(20.0 * tokens * 1e8));
  CHECK(train.memory.total() > train.memory.activations);
}

TEST_CASE("Keys and values that go round between ranks of a context are counted at any size") {
  const Result result = estimate_large("125000000", "{ context: 8 }");
  // Seven eighths of the keys and values of all tokens, each 10⁸ numbers of 2 bytes, at 300 GB/s a GPU at most.
  CHECK(result.time() > Seconds(2.0 * 2.0 * tokens * 1e8 * 7.0 / 8.0 / 300e9));
}
