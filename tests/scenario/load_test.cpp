#include "model/scenario/load/load.hpp"

#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/scenario/plan/plan_reader.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Scenario load(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return load_scenario_text(text, "folder/small-run.yaml", overrides);
}
const TrainWorkload& train_of(const Scenario& scenario) { return std::get<TrainWorkload>(scenario.workload); }

constexpr const char* small_train =
    "cluster: { node: dgx-a100-80gb, nodes: 2 }\n"
    "workload: { train: { model: bert-base } }\n";

Scenario precise(const std::string& keys, const std::vector<std::string>& overrides = {}) {
  return load(
      "cluster: { node: dgx-b200 }\nworkload: { train: { model: llama3-8b, " + keys + " } }\nplan: { zero: 1 }\n",
      overrides);
}
TrainWorkload trained(const std::string& keys) { return train_of(precise(keys)); }

}  // namespace

TEST_CASE("Keys of a scenario arrive in units of the program, and what follows from them") {
  const Scenario scenario =
      load(small_train, {"name=GPT-3 175B", "description=one sentence", "cluster.network.nic_bandwidth=200 Gbit/s",
                         "cluster.price=2.5 USD/GPU/hour", "plan.execution=cuda_graph",
                         "workload.train={ model: { family: gpt, layers: 96, hidden: 12288, "
                         "heads: 96, vocabulary: 51200, sequence: 2048 }, recompute: full, "
                         "samples: 300 billion tokens }",
                         "plan.sync={ algorithm: ring, first_bucket: 1 MB, compression: bf16, "
                         "error_feedback: true }"});
  CHECK(scenario.name == "GPT-3 175B");
  CHECK(scenario.description == "one sentence");
  CHECK(scenario.cluster.network.nic_bandwidth.value() == 25e9);
  CHECK(scenario.cluster.usd_per_gpu_hour == 2.5);
  const auto& model = std::get<TransformerConfig>(train_of(scenario).model.shape);
  CHECK(model.head_dim == 128);  // 12288 / 96
  CHECK(model.ffn_hidden == 4 * 12288);
  CHECK(train_of(scenario).recompute == Recompute::full);
  CHECK(train_of(scenario).training_samples == 300e9 / 2048);  // tokens over tokens per sequence
  CHECK(scenario.plan.sync.algorithm == SyncAlgorithm::ring);
  CHECK(scenario.plan.sync.first_bucket == Bytes(1e6));
  CHECK(scenario.plan.sync.compression.kind == Compression::Kind::bf16);
  CHECK(scenario.plan.sync.compression.error_feedback);
  CHECK(scenario.plan.execution == ExecutionMode::cuda_graph);
}

TEST_CASE("Ways of compressing gradients") {
  const auto compression = [](const std::string& value) {
    return load(std::string(small_train) + "plan: { sync: { compression: " + value + " } }\n").plan.sync.compression;
  };
  CHECK(compression("none").kind == Compression::Kind::none);
  CHECK(compression("fp8").kind == Compression::Kind::fp8);
  CHECK_FALSE(compression("fp16").error_feedback);
  CHECK(compression("powersgd(4)").kind == Compression::Kind::powersgd);
  CHECK(compression("powersgd(4)").rank == 4);
  CHECK(compression("powersgd(4)").error_feedback);
  CHECK(compression("top_k(0.001)").kind == Compression::Kind::top_k);
  CHECK(compression("top_k(0.001)").share == Approx(0.001));
  CHECK(compression("top_k(0.1 %)").share == Approx(0.001));
  CHECK(compression("top_k( 100% )").share == Approx(1.0));
  CHECK_FALSE(compression("top_k(1 %), error_feedback: false").error_feedback);
}

TEST_CASE("Parameter servers: every key, and the machines that dedicated ones take") {
  const Scenario scenario = load(R"(
cluster: { node: dgx-a100-80gb, nodes: 6 }
workload:
  train: { model: resnet-50, micro_batch: 8, compute_spread: 5 % }
plan:
  sync:
    algorithm: parameter_server
    servers: 4
    placement: dedicated
    consistency: bounded(3)
    split: 2 MB
    slow_workers: { count: 2, factor: 1.5 }
)");
  const Sync& sync = scenario.plan.sync;
  CHECK(sync.algorithm == SyncAlgorithm::parameter_server);
  CHECK(sync.consistency == Sync::Consistency::bounded);
  CHECK(sync.staleness == 3);
  CHECK(sync.split.value() == 2e6);
  CHECK(sync.slow_workers.count == 2);
  CHECK(sync.slow_workers.factor == 1.5);
  CHECK(train_of(scenario).compute_spread == Approx(0.05));
  CHECK(scenario.plan.data == 16);  // the GPUs of the two machines that are no servers
}

TEST_CASE("What is left out has the documented default") {
  const Scenario scenario = load(small_train);
  CHECK(scenario.name == "small-run");  // the file's name
  CHECK(scenario.cluster.gpus_per_node == 8);
  CHECK(scenario.cluster.network.nics_per_node == scenario.cluster.node.network.nics_per_node);
  CHECK(scenario.plan.data == 16);  // all GPUs
  CHECK(train_of(scenario).micro_batch == 1);
  CHECK(train_of(scenario).global_batch == 16);  // data x micro-batch
  CHECK(train_of(scenario).attention == AttentionKind::flash);
  CHECK(scenario.plan.sync.bucket_rule == "auto");
  CHECK(scenario.plan.sync.bucket == Bytes(64e6));  // a million fp32 numbers for each of 16 ranks
}

TEST_CASE("Data is what the other factors leave") {
  CHECK(load(small_train, {"plan.tensor=4", "plan.pipeline=2"}).plan.data == 2);  // 16 / 8
  CHECK(load(small_train, {"plan.tensor=4", "plan.context=4"}).plan.data == 1);
}

TEST_CASE("Gradients are summed in fp32 for all formats and ZeRO stages, unless the trainer does otherwise") {
  const auto summed_in = [](const std::string& precision, int zero, const std::string& trainer = "") {
    std::vector<std::string> keys = {"cluster.node=dgx-h100", "workload.train.precision=" + precision,
                                     fmt::format("plan.zero={}", zero)};
    if (!trainer.empty()) keys.push_back("plan.framework=" + trainer);
    return load(small_train, keys).plan.sync.gradient_precision;
  };
  for (const char* precision : {"fp32", "tf32", "fp16", "bf16", "fp8"}) {
    for (int zero = 0; zero <= 3; ++zero) CHECK(summed_in(precision, zero) == Precision::fp32);
  }
  CHECK(summed_in("fp16", 0, "megatron") == Precision::fp16);
  CHECK(summed_in("bf16", 0, "megatron") == Precision::fp32);
  CHECK(summed_in("bf16", 3, "fsdp") == Precision::bf16);
  CHECK(summed_in("fp16", 3, "fsdp") == Precision::fp16);
  CHECK(summed_in("tf32", 3, "fsdp") == Precision::fp32);
  CHECK(load(small_train, {"plan.framework=fsdp", "plan.sync.gradient_precision=fp32"}).plan.sync.gradient_precision ==
        Precision::fp32);
}

TEST_CASE("Overrides replace, add and go below names") {
  const Scenario scenario = load(small_train, {"workload.train.model.sequence=128", "cluster.node.gpu.memory=96 GiB",
                                               "cluster.nodes=1", "plan.sync={ algorithm: ring, bucket: 1 MiB }"});
  CHECK(std::get<TransformerConfig>(train_of(scenario).model.shape).sequence == 128);
  CHECK(std::get<TransformerConfig>(train_of(scenario).model.shape).hidden == 768);  // still bert-base
  CHECK(scenario.cluster.node.gpu.memory.value() == 96.0 * 1073741824.0);
  CHECK(scenario.cluster.node.gpu.name == "a100-sxm-80gb");
  CHECK(scenario.cluster.gpus() == 8);
  CHECK(scenario.plan.sync.bucket.value() == 1048576.0);
  const Scenario other = load(small_train, {"workload.train.model=resnet-50", "workload.train.model=vgg-16"});
  CHECK(train_of(other).model.name == "vgg-16");  // the last one counts
}

TEST_CASE("Positions of keys are kept, with the nearest key above for those not written") {
  const Scenario scenario = load(small_train);
  CHECK(position_of(scenario, "cluster.nodes").text() == "folder/small-run.yaml:1:40");
  CHECK(position_of(scenario, "workload.train.micro_batch").text() == "folder/small-run.yaml:2:20");
  CHECK(position_of(scenario, "plan.tensor").text() == "folder/small-run.yaml:1:1");
}

TEST_CASE("Collectives and operators of the contract") {
  const std::string node = "cluster: { node: dgx-a100-80gb, nodes: 2 }\nworkload: ";
  const Scenario collective =
      load(node + "{ collective: { operation: all_reduce, size: 1 GB, ranks: 16, algorithm: ring } }");
  const auto& call = std::get<CollectiveWorkload>(collective.workload);
  CHECK(call.operation == CollectiveOperation::all_reduce);
  CHECK(call.size.value() == 1e9);
  CHECK(call.ranks == 16);
  CHECK(collective.plan.sync.algorithm == SyncAlgorithm::ring);
  CHECK(
      std::get<CollectiveWorkload>(load(node + "{ collective: { operation: broadcast, size: 0 B } }").workload).ranks ==
      16);

  const Scenario matmul =
      load(node + "{ operator: { kind: matmul, m: 4096, n: 2048, k: 1024, precision: bf16, repeat: 3 } }");
  const auto& op = std::get<OperatorWorkload>(matmul.workload);
  CHECK(op.repeat == 3);
  CHECK(std::get<Matmul>(op.op.work) == Matmul{1, 4096, 2048, 1024, false});
  CHECK(op.op.precision == Precision::bf16);
}

TEST_CASE("Conditions under which an operator runs alone") {
  const std::string node = "cluster: { node: dgx-b200 }\nworkload: { operator: { kind: matmul, m: 8, n: 8, k: 8, ";
  const auto conditions = [&](const std::string& text) {
    return std::get<OperatorWorkload>(load(node + text + " } }").workload).conditions;
  };
  CHECK(conditions("precision: bf16") == OperatorConditions{});
  CHECK(conditions("precision: fp8, clock: boost, launch: stream, cast: false") ==
        OperatorConditions{Clock::boost, Launched::stream, false});
}

TEST_CASE("Shapes of the other operators") {
  const std::string node = "cluster: { node: dgx-a100-80gb }\nworkload: { operator: ";
  const auto work = [&](const std::string& text) {
    return std::get<OperatorWorkload>(load(node + text + " }").workload).op.work;
  };
  // ResNet's stem: (224 + 2·3 − 7) / 2 + 1 = 112 (rounded down)
  const auto conv =
      std::get<Convolution>(work("{ kind: convolution, batch: 8, channels: 3, height: 224, width: 224, "
                                 "filters: 64, kernel: 7, stride: 2, pad: 3 }"));
  CHECK(conv.p == 112);
  CHECK(conv.q == 112);
  const auto attention =
      std::get<Attention>(work("{ kind: attention, batch: 2, heads: 8, sequence: 512, head_dim: 64, causal: true }"));
  CHECK(attention.kv_heads == 8);
  CHECK(attention.key_length == 512);
  CHECK(attention.causal);
  // Standard attention: two products and a softmax, going back four products and a softmax, a kernel of dropout; a mask
  // is one of its own unless the softmax knows it.
  const auto kernels = [&](const std::string& keys) {
    return std::get<OperatorWorkload>(
               load(node + "{ kind: attention, batch: 2, heads: 8, sequence: 512, head_dim: 64, " + keys + " } }")
                   .workload)
        .op.kernels;
  };
  CHECK(kernels("attention: flash, precision: bf16") == 1);
  CHECK(kernels("attention: flash, causal: true, precision: bf16") == 2);  // an engine's, prepared by another
  CHECK(kernels("attention: flash, causal: true, cache: false, precision: bf16") == 1);
  CHECK(kernels("attention: standard") == 3);
  CHECK(kernels("attention: standard, causal: true") == 4);
  CHECK(kernels("attention: standard, causal: true, fused_softmax: true") == 3);
  CHECK(kernels("attention: standard, backward: true") == 5);
  CHECK(kernels("attention: standard, backward: true, causal: true, dropout: true") == 6);
  // 2 inputs and 1 output of 1000 bf16 numbers
  const auto add = std::get<Streaming>(work("{ kind: elementwise, elements: 1000, inputs: 2, precision: bf16 }"));
  CHECK(add.read.value() == 4000.0);
  CHECK(add.written.value() == 2000.0);
  const auto copy = std::get<Streaming>(work("{ kind: copy, size: 1 GB }"));
  CHECK(copy.read.value() == 1e9);
  CHECK(copy.written.value() == 1e9);
}

TEST_CASE("Tasks of a small graph") {
  const Scenario scenario = load(R"(
cluster: { node: dgx-a100-80gb }
workload:
  tasks:
    - { id: work, on: gpu0, run: { matmul: { m: 4, n: 4, k: 4 }, repeat: 50 } }
    - { id: home, on: "gpu0:d2h", run: { copy: { from: gpu0, to: cpu, size: 64 MB, pinned: false } }, after: work }
    - { id: wait, on: cpu, run: { sleep: 2 ms } }
    - { id: done, on: cpu, run: synchronize, after: [work, home] }
)");
  const auto& tasks = std::get<TasksWorkload>(scenario.workload).tasks;
  REQUIRE(tasks.size() == 4);
  CHECK(std::get<Matmul>(std::get<Operator>(tasks[0].work).work) == Matmul{.m = 4, .n = 4, .k = 4});
  CHECK(tasks[0].repeat == 50);
  CHECK(tasks[1].on == "gpu0:d2h");
  CHECK(std::get<CopyWork>(tasks[1].work) == CopyWork{"gpu0", "cpu", 64.0_MB, false});
  CHECK(tasks[1].after == std::vector<std::string>{"work"});
  CHECK(std::get<HostWork>(tasks[2].work).action == HostWork::Action::sleep);
  CHECK(std::get<HostWork>(tasks[2].work).duration.value() == Approx(2e-3));
  CHECK(std::get<HostWork>(tasks[3].work).action == HostWork::Action::synchronize);
  CHECK(tasks[3].after.size() == 2);
  CHECK(tasks[3].where.line == 8);
}

TEST_CASE("Experts over more ranks than data and context have are whole on tensor ranks") {
  const auto plan_of = [](const std::string& plan) {
    const std::string text =
        "cluster: { node: dgx-h100, nodes: 1 }\nworkload: { train: { model: mixtral-8x7b, global_batch: 4 } }\n";
    return load_scenario_text(text + "plan: { tensor: 2, data: 4, " + plan + " }\n", "folded.yaml").plan;
  };
  // Eight ranks of experts are two tensor ranks times four replicas; four are the replicas alone unless it is said.
  CHECK(plan_of("expert: 8").folded_experts);
  CHECK(plan_of("expert: 8").expert == 4);
  CHECK_FALSE(plan_of("expert: 4").folded_experts);
  CHECK(plan_of("expert: 4").expert == 4);
  CHECK(plan_of("expert: 4, expert_tensor: 1").expert == 2);
  CHECK_FALSE(plan_of("expert: 4, expert_tensor: 2").folded_experts);
  // Mixtral's experts are 3.5 times as wide as its hidden state; Qwen3's are narrower than it.
  const std::string small =
      "cluster: { node: dgx-h100, nodes: 1 }\nworkload: { train: { model: qwen3-30b-a3b, global_batch: 4 } }\n"
      "plan: { tensor: 2, data: 4, expert: 4";
  CHECK(load_scenario_text(small + " }\n", "small.yaml").plan.expert == 2);
  CHECK(load_scenario_text(small + ", expert_tensor: 2 }\n", "small.yaml").plan.expert == 4);
  CHECK_THROWS_WITH(plan_of("expert: 4, expert_tensor: 3"), Catch::Contains("among 3 of 2 tensor ranks"));
}

TEST_CASE("A batch for each GPU grows with the cluster, and what is stated later replaces it") {
  const std::string text =
      "cluster: { node: dgx-a100-80gb, nodes: 2 }\nworkload: { train: { model: gpt2, global_batch_per_gpu: 8 } }\n";
  const auto batch = [&](const std::vector<std::string>& changes) {
    return std::get<TrainWorkload>(load_scenario_text(text, "text.yaml", changes).workload).global_batch;
  };
  CHECK(batch({}) == 8 * 16);
  CHECK(batch({"cluster.nodes=8"}) == 8 * 64);
  CHECK(batch({"plan.tensor=2", "workload.train.global_batch_per_gpu=0.5"}) == 8);  // of all GPUs, not of replicas
  CHECK(batch({"workload.train.global_batch=32"}) == 32);
}

TEST_CASE("A pipeline cuts a vision-language model between any two of its layers, of either part") {
  // LLaVA-1.5: 24 layers see, 32 speak.
  CHECK(load("cluster: { node: dgx-a100-80gb, nodes: 7 }\nworkload: { train: { model: llava-1.5-7b } }\n"
             "plan: { pipeline: 56 }\n")
            .plan.pipeline == 56);
}

TEST_CASE("A precision is a word, a format with its recipe, or both side by side") {
  CHECK(trained("precision: mxfp8").precision == Precision::mxfp8);
  CHECK(trained("precision: nvfp4").precision == Precision::nvfp4);
  CHECK(trained("precision: fp8").recipe == QuantisationRecipe{});
  for (const char* keys : {"precision: { fp8: { scaling: block } }", "precision: fp8, fp8: { scaling: block }",
                           "fp8: { scaling: block }"}) {
    INFO(keys);
    CHECK(trained(keys).precision == Precision::fp8);
    CHECK(trained(keys).recipe.scaling == Fp8Scaling::block);
  }
  CHECK(trained("precision: { nvfp4: { last_bf16_layers: 4 } }").recipe.last_bf16_layers == 4);
  CHECK(trained("precision: mxfp8, mxfp8: { first_bf16_layers: 1 }").recipe.first_bf16_layers == 1);
}

TEST_CASE("A recipe below a word, as tables and the command line state it") {
  const Scenario scenario = precise("precision: fp8", {"workload.train.precision.fp8.scaling=current"});
  CHECK(std::get<TrainWorkload>(scenario.workload).recipe.scaling == Fp8Scaling::current);
}
