#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

const std::string header =
    "case,cluster.node,cluster.nodes,workload.train.model,workload.train.global_batch,workload.train.micro_batch,"
    "measured.tokens_per_second_per_gpu\n";

/// Steps of GPT-2, each some times slower than a well-tuned one.
std::string runs(int count) {
  std::string text = header;
  for (int i = 0; i < count; ++i) {
    const int micro_batch = i % 2 == 0 ? 1 : 4;
    text += fmt::format("run-{},dgx-a100-80gb,{},gpt2,{},{},{}\n", i, 1 + i % 2, 64 * micro_batch, micro_batch,
                        4000 + 100 * i);
  }
  return text;
}

}  // namespace

TEST_CASE("learn writes a stack, names rows that it cannot use, and other commands predict with it") {
  const TemporaryFolder folder;
  const std::string stack = folder.file("stack.yaml");
  // The last row measures half the rate of the first, of the same run.
  const std::string table = folder.file(
      "runs.csv", runs(8) + "bad,dgx-a100-80gb,1,gpt-2000,64,1,5000\n" + "again,dgx-a100-80gb,1,gpt2,64,1,2000\n");
  const FilterResult learned = run_program({"learn", table, "-o", stack});
  INFO(learned.errors);
  CHECK(learned.status == 0);
  CHECK_THAT(learned.output, Catch::Contains("Learned from 8 runs") && Catch::Contains("each fifth predicted"));
  CHECK_THAT(learned.errors, Catch::Contains("bad is left out") && Catch::Contains("runs.csv:10:"));
  CHECK_THAT(learned.errors,
             Catch::Contains("again is left out") && Catch::Contains("runs.csv:11:") && Catch::Contains("run-0"));
  const FilterResult usual = run_program({"predict", "gpt2-xl-dgx-a100", "--json"});
  const FilterResult slow = run_program({"predict", "gpt2-xl-dgx-a100", "--stack", stack, "--json"});
  CHECK(slow.status == 0);
  CHECK_THAT(slow.output, Catch::Contains("learned from runs.csv") || Catch::Contains("runs say so"));
  CHECK(slow.output != usual.output);
  const std::string good = folder.file("good.csv", runs(8));
  CHECK(run_program({"validate", "--cases", good, "--stack", stack, "--fidelity", "estimate"}).status == 0);
}

TEST_CASE("learn wants five runs, a base that there is, and an output") {
  const TemporaryFolder folder;
  const std::string few = folder.file("few.csv", runs(4));
  const FilterResult refused = run_program({"learn", few, "-o", folder.file("s.yaml")});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.errors, Catch::Contains("at least 5"));
  CHECK(run_program({"learn", few}).status == 2);
  const std::string enough = folder.file("runs.csv", runs(6));
  const FilterResult unknown = run_program({"learn", enough, "--base", "nobody", "-o", folder.file("s.yaml")});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.errors, Catch::Contains("nobody"));
}

}  // namespace foretrain::test
