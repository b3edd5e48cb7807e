// Bad workloads other than training, and bad traffic beside them.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

TEST_CASE("Bad workloads") {
  struct Row {
    std::string text;  ///< the workload, flow style, marked
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {"{ collective: { operation: all_reduce, size: ^1 GB/s } }", "workload.collective.size",
       "a bandwidth, not a size", "write GB"},
      {"{ collective: { operation: all_reduce, size: 1 GB, ranks: ^17 } }", "workload.collective.ranks",
       "17 ranks on 16 GPUs", "at most 16"},
      {"{ collective: { operation: all_reduce, size: 1 GB, algorithm: parameter_server, servers: ^17, placement: gpu } "
       "}",
       "workload.collective.servers", "17 servers on 16 GPUs", "at most 16"},
      {"{ collective: { operation: all_reduce, size: 1 GB, groups: ^3 } }", "workload.collective.groups",
       "16 ranks cannot be divided into 3 groups", "a divisor of 16"},
      {"{ collective: { operation: all_reduce, size: 1 GB, groups: ^0 } }", "workload.collective.groups",
       "out of range", "from 1"},
      {"{ train: { model: resnet-50, attention: ^flash } }", "workload.train.attention", "without attention",
       "leave the key out"},
      {"{ train: { model: llava-1.5-7b, attention: ^flash_3 } }", "workload.train.attention", "needs Hopper", "flash"},
      {"{ train: { model: llava-1.5-7b, precision: fp32, attention: ^flash_2 } }", "workload.train.attention",
       "no fp32 kernels", "memory_efficient"},
      {"{ tasks: [ { id: a, on: gpu0, run: { forward: { model: gpt2, precision: bf16, attention: ^flash_3 } } } ] }",
       "workload.tasks[0].run.forward.attention", "needs Hopper", "flash"},
      {"{ tasks: [ { id: a, on: gpu0, run: { copy: { from: gpu0, to: ^gpu0, size: 1 B } } } ] }",
       "workload.tasks[0].run.copy.to", "from gpu0 to gpu0", "another place"},
      {"{ tasks: [ { id: a, on: ^\"gpu0:h2d\", run: { softmax: { rows: 1, columns: 1 } } } ] }", "workload.tasks[0].on",
       "a queue of copies", "gpu0:stream1"},
      {"{ tasks: [ { id: a, on: ^\"gpu0:d2h\", run: { forward: { model: lenet } } } ] }", "workload.tasks[0].on",
       "a queue of copies", "gpu0:stream1"},
      {"{ train: { model: gpt2, memory_format: ^nhwc } }", "workload.train.memory_format", "no network of layers",
       "leave the key out"},
      {"{ train: { model: resnet-50, kernels: ^plain } }", "workload.train.kernels", "a network of layers",
       "leave the key out"},
      {"{ collective: { operation: all_reduce, size: 1 GB } }\nplan: { sync: { compression: ^fp16 } }",
       "plan.sync.compression", "a collective on its own", "a training workload"},
      {"{ operator: { kind: ^matmull, m: 1, n: 1, k: 1 } }", "workload.operator.kind", "unknown operator",
       "did you mean matmul?"},
      {"{ operator: ^{ m: 1, n: 1, k: 1 } }", "workload.operator.kind", "missing", "matmul"},
      {"{ operator: { kind: matmul, m: ^0, n: 1, k: 1 } }", "workload.operator.m", "out of range", "from 1"},
      {"{ operator: { kind: convolution, batch: 1, channels: 3, height: 4, width: 4, filters: 8, kernel: ^7 } }",
       "workload.operator.kernel", "larger than the padded input", "fits"},
      {"{ operator: { kind: attention, batch: 1, heads: 8, kv_heads: ^3, sequence: 8, head_dim: 8 } }",
       "workload.operator.kv_heads", "8 heads cannot share 3", "divisor of 8"},
      {"{ tasks: ^[] }", "workload.tasks", "no tasks", "at least one"},
      {"{ tasks: [ { id: a, on: ^gpu16, run: synchronize } ] }", "workload.tasks[0].on", "gpu16 does not exist",
       "gpu0 to gpu15"},
      {"{ tasks: [ { id: a, on: ^cpu2, run: synchronize } ] }", "workload.tasks[0].on", "cpu2 does not exist",
       "cpu0 to cpu1"},
      {"{ tasks: [ { id: a, on: ^tpu0, run: synchronize } ] }", "workload.tasks[0].on", "unknown place", "disk"},
      {"{ tasks: [ { id: a, on: ^\"gpu0:x\", run: synchronize } ] }", "workload.tasks[0].on", "unknown queue",
       "gpu0:stream1"},
      {"{ tasks: [ { id: a, on: gpu0, run: ^{ sleep: 1 s, copy: { from: cpu, to: gpu0, size: 1 B } } } ] }",
       "workload.tasks[0].run", "2 pieces of work", "one"},
      {"{ tasks: [ { id: a, on: gpu0, run: synchronize, after: [^b] } ] }", "workload.tasks[0].after[0]",
       "no task \"b\"", "further up"},
      {"{ tasks: [ { id: a, on: cpu, run: synchronize }, { id: ^a, on: cpu, run: synchronize } ] }",
       "workload.tasks[1].id", "a second task", "of its own"},
      {"{ tasks: [ { id: a, on: gpu0, run: synchronize, enqueued_by: ^cpu } ] }", "workload.tasks[0].enqueued_by",
       "only operators, copies and calls", "no enqueued_by"},
      {"{ tasks: [ { id: a, on: gpu0, run: { copy: { from: gpu0, to: cpu, size: 1 B } }, enqueued_by: ^gpu0 } ] }",
       "workload.tasks[0].enqueued_by", "gpu0 is no host", "cpu"},
      {"{ tasks: [ { id: a, on: ^cpu, run: { forward: { model: lenet } } } ] }", "workload.tasks[0].on",
       "a model is called on a GPU", "gpu0"},
      {"{ tasks: [ { id: a, on: gpu0, run: { forward: { model: lenet, batch: ^0 } } } ] }",
       "workload.tasks[0].run.forward.batch", "0", "from 1"},
      {"{ tasks: [ { id: a, on: gpu0, run: { forward_backward: { model: lenet, execution: ^fast } } } ] }",
       "workload.tasks[0].run.forward_backward.execution", "unknown", "eager"},
      {"{ tasks: [ { id: a, on: ^gpu0, run: { item: { from: gpu0 } } } ] }", "workload.tasks[0].on",
       "gpu0 waits for nobody", "on: cpu"},
      {"{ tasks: [ { id: a, on: cpu, run: { item: { from: ^cpu } } } ] }", "workload.tasks[0].run.item.from",
       "cpu is no GPU", "gpu0"},
      {"{ tasks: [ { id: a, on: cpu, run: { print: ^{ from: gpu0 } } } ] }", "workload.tasks[0].run.print.size",
       "missing", ""},
      {"{ tasks: [ { loop: ^0, tasks: [ { id: a, on: cpu, run: synchronize } ] } ] }", "workload.tasks[0].loop", "0",
       "from 1"},
      {"{ tasks: [ { loop: 2, tasks: ^[] } ] }", "workload.tasks[0].tasks", "no tasks", "at least one"},
      {"{ tasks: [ { loop: 2, tasks: [ ^{ loop: 2, tasks: [ { id: a, on: cpu, run: synchronize } ] } ] } ] }",
       "workload.tasks[0].tasks[0]", "a loop inside a loop", "one loop after the other"},
      {"{ tasks: [ { loop: 10000, tasks: [ { id: a, on: cpu, run: ^{ sleep: 1 s, repeat: 10000 } } ] } ] }",
       "workload.tasks[0].tasks[0].run", "100000000 repetitions", "at most 20000000"}};
  for (const Row& row : rows) {
    std::string text = "cluster: { node: dgx-a100-80gb, nodes: 2 }\nworkload: " + row.text + "\n";
    check_complaint(std::move(text), row.key, row.wrong, row.right);
  }
}

TEST_CASE("Bad background traffic") {
  struct Row {
    std::string text;  ///< the value of background, flow style, marked
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {"^{ from: gpu0, to: gpu1 }", "background", "a mapping where a list belongs", "a list"},
      {"[ { from: ^gpu16, to: gpu1 } ]", "background[0].from", "gpu16 does not exist", "gpu0 to gpu15"},
      {"[ { from: node0, to: gpu1 }, { from: node0, to: ^node2 } ]", "background[1].to", "node2 does not exist",
       "node0 to node1"},
      {"[ { from: ^node0/cpu2, to: gpu1 } ]", "background[0].from", "cpu2 does not exist", "cpu0 to cpu1"},
      {"[ { from: ^host of gpu16, to: gpu1 } ]", "background[0].from", "gpu16 does not exist", "gpu0 to gpu15"},
      {"[ { from: ^disk, to: gpu1 } ]", "background[0].from", "unknown place \"disk\"", "host of gpu<rank>"},
      {"[ { from: ^node, to: gpu1 } ]", "background[0].from", "unknown place", "node<number>"},
      {"[ { from: gpu1, to: ^gpu1 } ]", "background[0].to", "from gpu1 to gpu1", "another place"},
      {"[ ^{ from: gpu1 } ]", "background[0].to", "missing", ""},
      {"[ { from: gpu1, to: gpu0, rate: ^0 Gbit/s } ]", "background[0].rate", "zero", ""},
      {"[ { from: gpu1, to: gpu0, rate: ^-1 Gbit/s } ]", "background[0].rate", "negative", ""},
      {"[ { from: gpu1, to: gpu0, rate: ^20 GB } ]", "background[0].rate", "a size, not a bandwidth", ""},
      {"[ { from: gpu1, to: gpu0, ^speed: 20 GB/s } ]", "background[0].speed", "unknown key", ""}};
  for (const Row& row : rows) {
    std::string text =
        "cluster: { node: dgx-a100-80gb, nodes: 2 }\n"
        "workload: { collective: { operation: all_reduce, size: 1 GB } }\nbackground: " +
        row.text + "\n";
    check_complaint(std::move(text), row.key, row.wrong, row.right);
  }
  check_complaint(
      "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: copy, size: 1 GB } }\n"
      "background: ^[ { from: gpu0, to: gpu1 } ]\n",
      "background", "an operator meets nobody", "train, collective or tasks");
}

TEST_CASE("Two kinds of workload are one too many") {
  const Complaint complaint = complaint_about(
      "cluster: { node: dgx-a100-80gb }\n"
      "workload: { collective: { operation: all_reduce, size: 1 GB }, operator: { kind: copy, size: 1 GB } }\n");
  CHECK(complaint.text ==
        "bad.yaml:2:11: workload: 2 kinds of workload; exactly one of train, collective, operator or tasks");
}
