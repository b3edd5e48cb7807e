// Attention that cannot be, or does not run on the GPU.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

TEST_CASE("Bad attention operators") {
  struct Row {
    std::string node, text;  ///< keys beside batch, heads and head_dim, flow style, marked
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {"dgx-a100-80gb", "sequence: 512, precision: fp16, attention: ^flash_3", "attention", "needs Hopper", "flash"},
      {"dgx-b200", "sequence: 512, precision: fp16, attention: ^flash_3", "attention", "needs Hopper", "flash"},
      {"dgx1-v100-16gb", "sequence: 512, precision: fp16, attention: ^flash_2", "attention", "needs Ampere",
       "memory_efficient or standard"},
      {"t4-x1", "sequence: 512, precision: fp16, attention: ^flash_2", "attention", "needs Ampere", "flash_1"},
      {"dgx1-v100-16gb", "sequence: 512, precision: fp16, attention: ^flash_1", "attention", "needs Turing",
       "memory_efficient or standard"},
      {"dgx-a100-80gb", "sequence: 512, attention: ^flash_2", "attention", "no fp32 kernels", "fp16 or bf16"},
      {"dgx-h100", "sequence: 512, precision: fp8, backward: true, attention: ^flash_3", "attention",
       "no fp8 kernels but the forward ones", "fp16 or bf16"},
      {"dgx-a100-80gb", "lengths: [512, 96], sequence: ^512", "sequence", "packed lengths say it", "either"},
      {"dgx-a100-80gb", "lengths: ^[]", "lengths", "empty list", "[512, 1024]"},
      {"dgx-a100-80gb", "lengths: [512, ^0]", "lengths[1]", "out of range", "from 1"},
      {"dgx-a100-80gb", "lengths: { distribution: uniform, count: 4, longest: 9, mean: ^3 }", "lengths.mean",
       "none of their own", "shortest and longest"},
      {"dgx-a100-80gb", "lengths: { distribution: exponential, count: 4, mean: 3, spread: ^3 }", "lengths.spread",
       "none of their own", "normal or lognormal"},
      {"dgx-a100-80gb", "lengths: { distribution: uniform, count: 4, shortest: 10, longest: ^9 }", "lengths.longest",
       "less than the shortest", "at least 10"},
      {"dgx-a100-80gb", "lengths: { distribution: normal, count: ^0, mean: 3, spread: 1 }", "lengths.count",
       "out of range", "from 1"},
      {"dgx-a100-80gb", "lengths: ^{ distribution: normal, count: 4, mean: 3 }", "lengths.spread", "missing", ""},
      {"dgx-a100-80gb", "sequence: 512, density: ^1.5", "density", "more than all", "0.25"},
      {"dgx-a100-80gb", "sequence: 512, density: ^0", "density", "zero", ""},
      {"dgx-a100-80gb", "sequence: 512, window: ^0", "window", "out of range", "from 1"},
      {"dgx-a100-80gb", "sequence: 512, key_sequence: 256, window: ^64", "window", "outnumber", "no window"},
      {"dgx-a100-80gb", "sequence: 512, dropout: ^true", "dropout", "only standard attention", "attention: standard"},
      {"dgx-a100-80gb", "sequence: 512, fused_softmax: ^true", "fused_softmax", "only standard attention", "standard"},
      {"dgx-a100-80gb", "sequence: 512, attention: standard, native: ^true", "native", "only flash attention", "flash"},
      {"dgx-a100-80gb", "sequence: 512, attention: flash_2, cache: ^true", "cache", "only forward passes by flash",
       "leave the key out"},
      {"dgx-a100-80gb", "sequence: 512, backward: true, cache: ^false", "cache", "only forward passes by flash",
       "leave the key out"},
      {"dgx-a100-80gb", "sequence: 512, splits: ^4", "splits", "only flash_1 attention", "flash_1"}};
  for (const Row& row : rows) {
    std::string text = "cluster: { node: " + row.node +
                       ", nodes: 1 }\nworkload: { operator: { kind: attention, batch: 1, heads: 8, head_dim: 64, " +
                       row.text + " } }\n";
    INFO(text);
    check_complaint(std::move(text), "workload.operator." + std::string(row.key), row.wrong, row.right);
  }
}

TEST_CASE("Heads wider than the kernels, too many sequences, and kinds that a task or a training cannot have") {
  check_complaint(
      "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: attention, batch: 1, heads: 8, sequence: 64, "
      "head_dim: 512, precision: bf16, attention: ^flash_2 } }\n",
      "workload.operator.attention", "kernels end at 256", "memory_efficient");
  check_complaint(
      "cluster: { node: dgx-a100-80gb }\nworkload: { operator: ^{ kind: attention, batch: 1, heads: 8, key_sequence: "
      "64, head_dim: 64 } }\n",
      "workload.operator.sequence", "missing", "");
  check_complaint(
      "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: attention, batch: ^1000000000, heads: 8, "
      "head_dim: 64, lengths: [1, 2] } }\n",
      "workload.operator.batch", "too many sequences", "at most");
  check_complaint(
      "cluster: { node: dgx-a100-80gb }\nworkload: { tasks: [ { id: a, on: gpu0, run: { attention: { batch: 1, heads: "
      "8, sequence: 64, head_dim: 64, precision: bf16, attention: ^flash_3 } } } ] }\n",
      "workload.tasks[0].run.attention.attention", "needs Hopper", "flash");
  check_complaint(
      "cluster: { node: dgx1-v100-16gb }\nworkload: { train: { model: gpt2, precision: fp16, attention: ^flash_2 } }\n",
      "workload.train.attention", "needs Ampere", "memory_efficient");
}
