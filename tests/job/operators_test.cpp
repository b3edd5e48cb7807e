// Jobs of one operator, several times or over many blocks, and of amounts that no integer of 64 bits holds.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

OperatorResult result_of(const std::string& op) {
  return *estimate(load_scenario_text("cluster: { node: dgx-a100-80gb }\nworkload: { operator: " + op + " }\n",
                                      "operator.yaml"))
              .op();
}

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

TEST_CASE("reading from a disk takes as long as its blocks, one after the other") {
  // A disk of 10,000 rpm: 0.4 ms of overhead, 4.7 ms of seeking, half a revolution of 6 ms, and 4 KiB at its transfer
  // rate, which is less than 0.1 ms.
  const OperatorResult one = result_of("{ kind: disk_read, order: random, block: 4 KiB, storage: hdd-10k }");
  CHECK(one.time.value() == Approx(8.15e-3).epsilon(0.01));
  CHECK(one.bytes.value() == 4096.0);
  const OperatorResult many =
      result_of("{ kind: disk_read, order: random, block: 4 KiB, size: 16 MiB, storage: hdd-10k }");
  CHECK(many.time.value() == Approx(4096 * one.time.value()));
  CHECK(many.bytes.value() == 4096.0 * 4096.0);
  CHECK(many.flops.value() == 0.0);
}

TEST_CASE("an operator three times takes three times as long, as many operations and as many bytes") {
  for (const std::string op :
       {"kind: matmul, m: 4096, n: 2048, k: 1024, precision: bf16", "kind: matmul, on: cpu, m: 512, n: 256, k: 128",
        "kind: memory_walk, on: cpu, working_set: 64 MiB",
        "kind: attention, batch: 2, heads: 16, sequence: 1024, head_dim: 64, precision: bf16"}) {
    CAPTURE(op);
    const OperatorResult once = result_of("{ " + op + " }"), thrice = result_of("{ " + op + ", repeat: 3 }");
    CHECK(thrice.time.value() == Approx(3.0 * once.time.value()));
    CHECK(thrice.flops.value() == Approx(3.0 * once.flops.value()));
    CHECK(thrice.bytes.value() == Approx(3.0 * once.bytes.value()));
    CHECK(thrice.bound == once.bound);
  }
  // Two operations for each of m · n · k.
  CHECK(result_of("{ kind: matmul, m: 4096, n: 2048, k: 1024, precision: bf16 }").flops.value() ==
        2.0 * 4096 * 2048 * 1024);
}

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
