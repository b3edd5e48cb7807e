// Bad input: every row says what is put where, and what the message has to name.
#include "tests/scenario/bad_input.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

constexpr BadLine bad_lines[] = {
    // keys
    {1, "^nmae: good", "nmae", "unknown key", "did you mean name?"},
    {4, "  ^node_count: 2", "cluster.node_count", "unknown key", "nodes"},
    {14, "  ^tensr: 2", "plan.tensr", "unknown key", "did you mean tensor?"},
    {14, "  ^bucket: 25 MB", "plan.bucket", "unknown key", "did you mean plan.sync.bucket?"},
    {11, "    ^sequence: 1024", "workload.train.sequence", "unknown key",
     "did you mean workload.train.model.sequence?"},
    {1, "^nodes: 4", "nodes", "unknown key", "did you mean cluster.nodes?"},
    {1, "^gpu: h100", "gpu", "unknown key", "did you mean cluster.node.gpu, cluster.failures.gpu or "},
    {11, "    ^tokens: 1.5T", "workload.train.tokens", "unknown key", "workload.train.samples: 15 trillion tokens"},
    {14, "  ^data: 4", "data", "given twice", "line 13"},
    {14, "  ^tensor:", "plan.tensor", "no value", "leave the key out"},
    {8, "    model: { family: gpt, layers: 24, ^hiden: 1024, heads: 16, vocabulary: 1, sequence: 1 }",
     "workload.train.model.hiden", "unknown key", "did you mean hidden?"},
    {8, "    model: ^{ family: gpt, layers: 24, heads: 16, vocabulary: 51200, sequence: 1024 }",
     "workload.train.model.hidden", "missing", "a value"},
    {6, "^workloads:", "workloads", "unknown key", "did you mean workload?"},
    // quantities
    {5, "  price: ^3", "cluster.price", "has no unit", "3 USD/GPU/hour"},
    {11, "    samples: ^300 billion", "workload.train.samples", "not a length of training", "300 billion tokens"},
    // whole numbers, words
    {4, "  nodes: ^0", "cluster.nodes", "out of range", "from 1"},
    {4, "  nodes: ^-2", "cluster.nodes", "out of range", "from 1"},
    {4, "  nodes: ^131073", "cluster.nodes", "out of range", "to 131072"},
    {4, "  nodes: ^two", "cluster.nodes", "not a whole number", "from 1"},
    {4, "  nodes: ^2.5", "cluster.nodes", "not a whole number", "from 1"},
    {4, "  nodes: ^99999999999999999999", "cluster.nodes", "too large", "from 1"},
    {4, "  nodes: ^[2]", "cluster.nodes", "a list where a single value belongs", "one value"},
    {11, "    precision: ^bf61", "workload.train.precision", "unknown value \"bf61\"", "did you mean bf16?"},
    {11, "    optimizer: ^lion", "workload.train.optimizer", "unknown value", "adamw"},
    {11, "    kernels: ^triton", "workload.train.kernels", "unknown value \"triton\"", "plain"},
    {11, "    recompute: ^yes", "workload.train.recompute", "unknown value", "selective"},
    {16, "  sequence_parallel: ^1", "plan.sequence_parallel", "neither true nor false", "true or false"},
    {16, "  zero: ^4", "plan.zero", "out of range", "from 0 to 3"},
    {16, "  headroom: ^120 %", "plan.headroom", "a headroom of 120 %", "less than 100 % of the memory"},
    {16, "  offload: ^disk", "plan.offload", "unknown value", "optimizer"},
    {16, "  offload: [optimizer, ^none]", "plan.offload[1]", "none beside other words", "none alone"},
    {16, "  reshard_after_forward: ^false", "plan.reshard_after_forward", "zero: 0 does not shard", "zero: 3"},
    {11, "    loss: ^fussed", "workload.train.loss", "unknown value", "did you mean fused?"},
    {11, "    loss: ^chunked", "workload.train.loss", "into how many parts", "chunked(8)"},
    {11, "    loss: ^chunked(0)", "workload.train.loss", "not a word with a number", "chunked(4)"},
    {11, "    loss: ^fused(8)", "workload.train.loss", "no parts to count", "chunked(8)"},
    {16, "  execution: ^jit", "plan.execution", "unknown value", "cuda_graph"},
    // names
    {3, "  node: ^dgx-a100-80g", "cluster.node", "unknown node", "dgx-a100-80gb"},
    {3, "  node: { preset: dgx-a100-80gb, gpu: ^a100-sxm-81gb }", "cluster.node.gpu", "unknown GPU", "a100-sxm-80gb"},
    {3, "  node: ^nodes/none.yaml", "cluster.node", "no file", "relative to this one"},
    {8, "    model: { family: gpt, layers: ^10001, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 1024 }",
     "workload.train.model.layers", "out of range", "to 10000"},
    {8, "    model: ^resnet-5", "workload.train.model", "unknown model", "resnet-50"},
    {8, "    model: { family: ^gtp, layers: 24 }", "workload.train.model.family", "unknown value", "did you mean gpt?"},
    {8, "    model: ^{ layers: 24 }", "workload.train.model", "no family", "family: gpt"},
    // combinations
    {13, "  data: ^8", "plan.data", "= 32, but the cluster has 16 GPUs", "data: 4"},
    {9, "    global_batch: ^2000008", "workload.train.global_batch",
     "250001 micro-batches in a step through 2 model chunks", "a larger micro_batch, or global_batch: 2000000"},
    {9, "    global_batch: ^60", "workload.train.global_batch", "not divisible by data 4 x micro_batch 2 = 8",
     "56 or 64"},
    {9, "    global_batch: 64\n    global_batch_per_gpu: ^4", "workload.train.global_batch_per_gpu", "says it already",
     "either"},
    {9, "    global_batch_per_gpu: ^0.3", "workload.train.global_batch_per_gpu", "4.8 samples on 16 GPUs",
     "whole number"},
    {9, "    global_batch_per_gpu: ^3.75", "workload.train.global_batch_per_gpu", "60 samples are not divisible", "56"},
    {16, "  embedding_in_pipeline: ^1", "plan.embedding_in_pipeline", "neither true nor false", "true or false"},
    {4, "  gpus_per_node: ^9", "cluster.gpus_per_node", "9 GPUs, but dgx-a100-80gb has 8", "at most 8"},
    {8, "    model: { family: gpt, layers: 24, hidden: 1000, heads: ^16, vocabulary: 51200, sequence: 1024 }",
     "workload.train.model.heads", "1000 is not divisible by 16", "divisor"},
    {8, "    model: { family: llama, layers: 24, hidden: 1024, heads: 16, kv_heads: ^5, vocabulary: 9, sequence: 8 }",
     "workload.train.model.kv_heads", "cannot share 5", "divisor of 16"},
    {8, "    model: { preset: mixtral-8x7b, expert_imbalance: ^0.5 }", "workload.train.model.expert_imbalance",
     "below the mean", "1 or more"},
    {8, "    model: { preset: mixtral-8x7b, dense_layers: ^33, dense_ffn_hidden: 64 }",
     "workload.train.model.dense_layers", "out of range", "32"},
    {8, "    model: { preset: llama3-8b, shared_experts: ^1 }", "workload.train.model.shared_experts", "no experts",
     "experts: 8"},
    {8, "    model: { preset: llama2-7b, v_head_dim: ^64 }", "workload.train.model.v_head_dim", "latent attention",
     "kv_lora_rank"},
    {8, "    model: { preset: llama3-8b, kv_lora_rank: 512, kv_heads: ^8 }", "workload.train.model.kv_heads",
     "for every head", "leave it out"},
    {8, "    model: { preset: mixtral-8x7b, experts_per_token: ^9 }", "workload.train.model.experts_per_token",
     "9 experts per token", "at most 8"},
    {15, "  pipeline: ^2\n  interleave: 13", "plan.pipeline", "24 layers cannot fill 2 stages of 13 chunks",
     "at most 24"},
    {15, "  pipeline: 1\n  context: 2\n  interleave: ^2", "plan.interleave", "without a pipeline", "interleave: 1"},
    {15, "  pipeline: 2\n  schedule: ^interleaved", "plan.schedule", "interleaved with 1 chunks", "gpipe or 1f1b"},
    {15, "  pipeline: 2\n  schedule: ^chimera", "plan.schedule", "unknown value",
     "gpipe, 1f1b, interleaved, zero_bubble or dualpipe"},
    {15, "  pipeline: 2\n  interleave: 2\n  schedule: ^1f1b", "plan.schedule", "1f1b with 2 chunks", "interleave: 1"},
    {15, "  pipeline: 2\n  interleave: 3\n  schedule: ^zero_bubble", "plan.schedule", "zero_bubble with 3 chunks",
     "interleave: 1 or 2"},
    {15, "  pipeline: 2\n  interleave: 2\n  schedule: ^dualpipe", "plan.schedule", "dualpipe with 2 chunks",
     "two chunks by itself"},
    {15, "  pipeline: 1\n  context: 2\n  schedule: ^zero_bubble", "plan.schedule", "without a pipeline", "2 or more"},
    {15, "  pipeline: 2\n  schedule: zero_bubble\n  zero: ^3", "plan.zero", "gathered for each pass", "0, 1 or 2"},
    {15, "  pipeline: 2\n  schedule: dualpipe\n  offload: ^activations", "plan.offload", "with dualpipe", "optimizer"},
    {11, "    checkpoint: { every: ^0 }", "workload.train.checkpoint.every", "out of range", "from 1"},
    {11, "    checkpoint: ^{ mode: synchronous }", "workload.train.checkpoint.every", "missing", "a value"},
    {11, "    checkpoint: { every: 10, mode: ^synchronos }", "workload.train.checkpoint.mode", "unknown value",
     "did you mean synchronous?"},
    {11, "    checkpoint: { every: 10, storage: ^nvme-pcie9 }", "workload.train.checkpoint.storage", "unknown storage",
     "nvme-pcie"},
    {16, "  tensor_overlap: ^true", "plan.tensor_overlap", "all-reduces", "sequence_parallel: true"},
    {16, "  tensor_overlap: ^on", "plan.tensor_overlap", "neither true nor false", "true or false"},
    {16, "  zero: { stage: 3, shard: ^3 }", "plan.zero.shard", "4 ranks with the same parameters", "divisor of 4"},
    {16, "  zero: { stage: 3, shard: ^0 }", "plan.zero.shard", "out of range", "from 1"},
    {16, "  zero: { stage: ^4, shard: 2 }", "plan.zero.stage", "out of range", "from 0 to 3"},
    {16, "  zero: { stage: 0, shard: ^4 }", "plan.zero.shard", "stage 0 divides nothing", "stage: 1, 2 or 3"},
    {16, "  zero: ^{ shard: 4 }", "plan.zero.stage", "missing", "a value"},
    {16, "  zero: { stage: 3, ^shards: 4 }", "plan.zero.shards", "unknown key", "did you mean shard?"},
    {16, "  expert: ^2", "plan.expert", "no experts", "expert: 1"},
    {16, "  expert_dispatch: ^forwarded", "plan.expert_dispatch", "no experts", "leave the key out"},
    {16, "  expert_overlap: ^true", "plan.expert_overlap", "no experts", "leave the key out"},
    {16, "  graphed_parts: ^router", "plan.graphed_parts", "no experts", "leave the key out"},
    {5, "  network: { nics_per_node: 8, nic_bandwidth: 200 Gbit/s, fairness: ^per_flow }", "cluster.network.fairness",
     "unknown value", "traffic_class"},
    {5, "  network: { nics_per_node: 8, nic_bandwidth: 200 Gbit/s, queue_pairs: ^0 }", "cluster.network.queue_pairs",
     "out of range", "from 1"},
};

}  // namespace

TEST_CASE("What no machine is large enough for is refused: too many GPUs in all groups") {
  check_complaint(
      "cluster: { groups: ^[ { node: dgx-a100-80gb, nodes: 131072 }, { node: dgx-h100, nodes: 1 } ] }\n"
      "workload: { collective: { operation: all_reduce, size: 1 MB } }\n",
      "cluster.groups", "131073 nodes with 1048584 GPUs", "at most 131072 nodes and 1048576 GPUs");
}

TEST_CASE("The scenario that the bad ones start from is good") {
  CHECK_NOTHROW(load_scenario_text(good_text(), "good.yaml"));
}

TEST_CASE("One bad line: file, line, column, key, what is wrong, what would be right") { check_bad_lines(bad_lines); }

TEST_CASE("The guilty key may stand in another line than the cause") {
  struct Row {
    std::vector<std::pair<std::size_t, std::string>> replaced;
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {{{13, "  data: 16"},
        {14, "  tensor: 1"},
        {15, "  pipeline: 1"},
        {16, "  sync: { algorithm: parameter_server, slow_workers: { count: ^17, factor: 2 } }"}},
       "plan.sync.slow_workers.count",
       "17 slow workers of 16",
       "at most 16"},
      {{{13, "  data: 16"},
        {14, "  tensor: 1"},
        {15, "  pipeline: 1"},
        {16, "  sync: { algorithm: parameter_server, local_reduce: true, slow_workers: { count: ^3, factor: 2 } }"}},
       "plan.sync.slow_workers.count",
       "3 slow workers of 2",
       "at most 2"},
      {{{13, "  data: 16"},
        {14, "  tensor: 1"},
        {15, "  pipeline: 1"},
        {16, "  sync: { algorithm: parameter_server, every_micro_batch: ^true }"}},
       "plan.sync.every_micro_batch",
       "sent the gradients of each micro-batch",
       "false"},
      {{{13, "  data: ^16"},
        {14, "  tensor: 1"},
        {15, "  pipeline: 1"},
        {16, "  sync: { algorithm: parameter_server, placement: dedicated }"}},
       "plan.data",
       "the cluster has 8 GPUs beside those of its dedicated servers",
       "data: 8"},
      // 24 heads over 16 ways of tensor parallelism; 16 GPUs, so data and pipeline are 1
      {{{8, "    model: { family: gpt, layers: 24, hidden: 1536, heads: 24, vocabulary: 51200, sequence: 1024 }"},
        {13, "  data: 1"},
        {14, "  tensor: ^16"},
        {15, "  pipeline: 1"}},
       "plan.tensor",
       "24 heads are not divisible by 16",
       "divisor of 24"},
      {{{8, "    model: llama3-8b"}, {13, "  data: 1"}, {14, "  tensor: ^16"}, {15, "  pipeline: 1"}},
       "plan.tensor",
       "8 key–value heads are not divisible by 16",
       "divisor of 8"},
      {{{8, "    model: { family: llama, layers: 24, hidden: 1536, heads: 24, vocabulary: 51200, sequence: 1024 }"},
        {13, "  data: 1"},
        {14, "  tensor: 1"},
        {15, "  context: ^16"},
        {16, "  context_method: ulysses"}},
       "plan.context",
       "Ulysses divides 24 heads over 16 ranks",
       "divisor of 24, or context_method: ring"},
      {{{8,
         "    model: { family: llama, layers: 4, hidden: 1536, heads: 48, kv_heads: 12, vocabulary: 512, sequence: 64 "
         "}"},
        {13, "  data: 1"},
        {14, "  tensor: 1"},
        {15, "  context: ^16"},
        {16, "  context_method: ulysses"}},
       "plan.context",
       "12 key–value heads over 16 ranks",
       "context_method: ring"},
      {{{8, "    model: resnet-50"}, {14, "  tensor: ^2"}}, "plan.tensor", "no transformer", "1, and more data"},
      // 16 GPUs, 3 x 2 ranks a replica, no data stated
      {{{13, "  context: 1"}, {14, "  tensor: ^3"}}, "plan.tensor", "does not divide the 16 GPUs", "product is 16"},
      // 10²⁴ ranks, which 64 bits do not count
      {{{11, "    precision: bf16"},
        {13, "  data: ^1000000"},
        {14, "  tensor: 1000000"},
        {15, "  pipeline: 1000000"},
        {16, "  context: 1000000"}},
       "plan.data",
       "x data 1000000 = 1e+24, but the cluster has 16 GPUs",
       "product is 16"},
      {{{3, "  node: rtx4090-x4"}, {4, "  nodes: ^2"}, {5, "  network: { nics_per_node: 0 }"}},
       "cluster.nodes",
       "2 nodes without a network",
       "nics_per_node"},
      {{{6, "workload: ^{}"}, {7, ""}, {8, ""}, {9, ""}, {10, ""}, {11, ""}},
       "workload",
       "0 kinds of workload",
       "exactly one of train"}};
  for (const Row& row : rows) {
    std::string text;
    for (std::size_t i = 0; i < good_lines().size(); ++i) {
      std::string line = good_lines()[i];
      for (const auto& [number, replacement] : row.replaced) {
        if (number == i + 1) line = replacement;
      }
      text += line + "\n";
    }
    check_complaint(std::move(text), row.key, row.wrong, row.right);
  }
}

TEST_CASE("Overrides name themselves") {
  const auto text_of = [](const std::string& change) { return complaint_about(good_text(), {change}).text; };
  CHECK(text_of("plan.tensr=2") == "--set plan.tensr=2: plan.tensr: unknown key; did you mean tensor?");
  CHECK(text_of("plan.tensor=4")
            .find("--set plan.tensor=4: plan.tensor: tensor 4 x pipeline 2 x context 1 x data 4 = "
                  "32, but the cluster has 16 GPUs") == 0);
  CHECK(text_of("plan.tensor") == "--set plan.tensor: this is no KEY=VALUE; for example plan.tensor=8");
  CHECK(text_of("plan..tensor=8").find("a part of this key is empty") != std::string::npos);
  CHECK(text_of("plan.tensor=").find("this is no KEY=VALUE") != std::string::npos);
  CHECK(text_of("plan.sync={ bucket: 3 MB/s }").find("plan.sync.bucket: \"3 MB/s\" is a bandwidth") !=
        std::string::npos);
  CHECK(text_of("plan.sync={ bucket").find("every bracket closed") != std::string::npos);
}

TEST_CASE("DualPipe needs an even number of stages, and of micro-batches, twice as many at least") {
  const auto with = [](const std::string& plan, const std::string& from, const std::string& to) {
    std::string text = good_text(15, plan);
    return text.replace(text.find(from), from.size(), to);
  };
  check_complaint(with("  pipeline: ^3\n  schedule: dualpipe", "nodes: 2", "nodes: 3"), "plan.pipeline",
                  "dualpipe with 3 stages", "an even number");
  // Four replicas of micro-batches of two: 24 samples are 3 of them, 16 samples 2.
  const std::string dualpipe = "  pipeline: 2\n  schedule: dualpipe";
  check_complaint(with(dualpipe, "global_batch: 64", "global_batch: ^24"), "workload.train.global_batch",
                  "dualpipe with 3 micro-batches over 2 stages", "global_batch: 32");
  check_complaint(with(dualpipe, "global_batch: 64", "global_batch: ^16"), "workload.train.global_batch",
                  "dualpipe with 2 micro-batches over 2 stages", "global_batch: 32");
  check_complaint(with(dualpipe, "global_batch: 64", "global_batch: ^40"), "workload.train.global_batch",
                  "dualpipe with 5 micro-batches over 2 stages", "global_batch: 48");
}

TEST_CASE("Ranks that share experts out belong to one shard") {
  std::string text = good_text(16, "  expert: 2\n  zero: { stage: 1, shard: ^1 }");
  const std::string dense = "family: gpt, layers: 24";
  text.replace(text.find(dense), dense.size(), dense + ", experts: 4, experts_per_token: 2");
  check_complaint(text, "plan.zero.shard", "1 ranks a shard with experts over 2", "a multiple of 2");
}

TEST_CASE("Collectives are not chunked behind products that have adapters beside them") {
  std::string text = good_text(16, "  sequence_parallel: true\n  tensor_overlap: ^true");
  text.replace(text.find("    precision: bf16"), 0, "    lora: { rank: 16 }\n");
  check_complaint(text, "plan.tensor_overlap", "adapters", "no lora");
}

TEST_CASE("Checkpoints need storage, and a training that holds its own state") {
  std::string text = good_text(11, "    checkpoint: { every: 10, storage: ^node }");
  const std::string node = "node: dgx-a100-80gb";
  text.replace(text.find(node), node.size(), "node: p100-nvlink-x2");
  check_complaint(text, "workload.train.checkpoint.storage", "the node has no storage", "a name of");

  text = good_text(16, "  sync: { algorithm: parameter_server }");
  text.replace(text.find("    precision: bf16"), 0, "    checkpoint: ^{ every: 10 }\n");
  check_complaint(text, "workload.train.checkpoint", "with a parameter server", "another plan.sync.algorithm");
}

TEST_CASE("Nothing is offloaded where servers hold the optimizer's states") {
  std::string text = good_text(16, "  sync: { algorithm: parameter_server }\n  offload: ^optimizer");
  const std::string split = "  data: 4\n  tensor: 2\n  pipeline: 2\n";
  text.replace(text.find(split), split.size(), "  data: 16\n");
  check_complaint(text, "plan.offload", "with a parameter server", "none");
}
