// Jobs of one operator, several times or over many blocks.
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
