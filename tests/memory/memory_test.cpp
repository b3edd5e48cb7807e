// The memory of a plan on a GPU, part by part.
#include "model/memory/memory.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/weight_gradients.hpp"
#include "model/scenario/load/load.hpp"
#include "model/workload/build.hpp"
#include "tests/catch.hpp"
#include "tests/memory/footprint.hpp"

using namespace foretrain;
using foretrain::test::Training;

namespace {

MemoryFootprint footprint(const std::vector<std::string>& overrides) {
  return Training("gpt3-175b-1024-a100", overrides).footprint();
}

/// Peak activations of a GPU of eight stages without tensor parallelism, 24 micro-batches, nothing recomputed.
Bytes activations_of(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"plan.tensor=1",
                                  "plan.sequence_parallel=false",
                                  "plan.data=128",
                                  "workload.train.global_batch=3072",
                                  "workload.train.recompute=none",
                                  "workload.train.attention=flash"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return footprint(all).activations;
}

}  // namespace

TEST_CASE("what a trainer logs on the first rank is less than what the GPU with the highest peak holds") {
  // One stage, all replicas alike: the allocator knows all but the context (800 MiB) and the communicators of gradients
  // and of tensor ranks (300 MiB each).
  const std::string logs = "workload.train.logged_memory=first_reserved";
  const MemoryFootprint alone = footprint({"plan={ data: 128, tensor: 8 }", logs});
  CHECK(alone.total().value() - alone.logged.value() == Approx((800.0 + 2 * 300.0) * 1048576.0));
  CHECK_FALSE(footprint({}).logged > Bytes(0.0));
  // Of two stages the second has 86 of 96 layers: it is the fullest, and the first rank says nothing of it.
  const std::vector<std::string> uneven = {"plan={ data: 64, tensor: 8, pipeline: 2, stage_layers: [10, 86] }", logs};
  const MemoryFootprint first = footprint(uneven);
  CHECK(first.logged.value() < 0.5 * first.total().value());
}

TEST_CASE("compression that remembers its error keeps a second copy of the gradients") {
  const auto with = [](std::vector<std::string> overrides) {
    overrides.emplace_back("plan.sync.bucket=25 MB");
    return footprint(overrides);
  };
  const MemoryFootprint plain = with({});
  const MemoryFootprint cast = with({"plan.sync.compression=bf16"});
  const MemoryFootprint fed_back = with({"plan.sync.compression=bf16", "plan.sync.error_feedback=true"});
  const MemoryFootprint factored = with({"plan.sync.compression=powersgd(1)"});
  // A cast needs a bucket of 25 MB in half the size.
  CHECK((cast.workspace - plain.workspace).value() == Approx(12.5e6));
  CHECK((fed_back.workspace - cast.workspace).value() == Approx(plain.gradients.value()));
  // PowerSGD: the error, a copy of a bucket and factors that hardly count.
  CHECK((factored.workspace - plain.workspace).value() == Approx(plain.gradients.value()).epsilon(0.01));
}

TEST_CASE("a bucket of gradients is copied, as large as they say but no larger than all of them; FSDP has none") {
  // VGG-16 has 138,357,544 gradients of 4 bytes.
  const auto workspace = [](const std::string& bucket, const std::string& more) {
    return Training("servers-server-beats-ring",
                    {"plan.sync={ algorithm: ring, copied: true, bucket: " + bucket + " }", more})
        .footprint()
        .workspace.value();
  };
  const std::string whole = "plan.zero=0", divided = "plan.zero=3";
  CHECK(workspace("50 MB", whole) - workspace("25 MB", whole) == Approx(25e6));
  CHECK(workspace("10 GB", whole) - workspace("25 MB", whole) == Approx(4.0 * 138'357'544 - 25e6));
  CHECK(workspace("50 MB", divided) == workspace("25 MB", divided));
}

TEST_CASE("a parameter's bytes: its weight, its gradient, an fp32 copy and the optimizer's states") {
  const auto bytes = [](const std::vector<std::string>& overrides) {
    const Scenario scenario = load_scenario("gpt3-175b-1024-a100", overrides);
    return bytes_per_parameter(scenario.plan, std::get<TrainWorkload>(scenario.workload)).value();
  };
  const std::string fp32 = "plan.sync.gradient_precision=fp32", copies = "workload.train.master_weights=true";
  CHECK(bytes({fp32, copies}) == 2 + 4 + 4 + 8);
  CHECK(bytes({fp32, "workload.train.master_weights=false"}) == 2 + 4 + 8);
  CHECK(bytes({fp32, copies, "workload.train.optimizer=momentum"}) == 2 + 4 + 4 + 4);
  CHECK(bytes({fp32, copies, "workload.train.optimizer=sgd"}) == 2 + 4 + 4);
  // FSDP divides fp32 weights themselves, of which there is no second copy.
  CHECK(bytes({fp32, copies, "plan.zero=3"}) == 4 + 4 + 8);
  CHECK(bytes({fp32, "workload.train.master_weights=false", "plan.zero=3"}) == 2 + 4 + 8);
}

TEST_CASE("casts of a step's only pass are gone when its gradients are there, unless these stay from step to step") {
  const auto bytes = [](const std::vector<std::string>& overrides) {
    const Scenario scenario = load_scenario_text(
        "name: one\ncluster: { node: dgx-h100, nodes: 1, gpus_per_node: 1 }\nworkload: { train: { model: gpt2, "
        "global_batch: 1, micro_batch: 1, kernels: plain } }\nplan: { sync: { gradient_precision: fp32 } }\n",
        "one.yaml", overrides);
    return bytes_per_parameter(scenario.plan, std::get<TrainWorkload>(scenario.workload)).value();
  };
  CHECK(bytes({}) == 4 + 4 + 8);
  CHECK(bytes({"workload.train.cache_cast_weights=false"}) == 2 + 4 + 4 + 8);
  CHECK(bytes({"workload.train.global_batch=2"}) == 2 + 4 + 4 + 8);                             // two passes
  CHECK(bytes({"workload.train.global_batch=2", "cluster.gpus_per_node=2"}) == 2 + 4 + 4 + 8);  // buckets
  CHECK(bytes({"plan.zero=1"}) == 4 + 4 + 8);  // there is nobody to divide states with
  CHECK(bytes({"workload.train.precision=fp32"}) == 4 + 4 + 8);
}

TEST_CASE("activations follow the schedule: GPipe keeps all micro-batches, ZB-H1 as many as 1F1B") {
  // 8 of 24 micro-batches are in flight on 1F1B's first stage.
  const Bytes alternating = activations_of({});
  // Under GPipe the last stage is as full as the first, and has what the loss keeps of 24 micro-batches besides.
  CHECK(activations_of({"plan.schedule=gpipe"}).value() == Approx(alternating.value() * 24.0 / 8.0).epsilon(0.06));
  CHECK(activations_of({"plan.schedule=zero_bubble"}).value() == Approx(alternating.value()).epsilon(0.06));
  // Two chunks of half the layers: p (v - 1) + 2 (p - 1) + 1 = 23 halves (arXiv 2205.05198, section 4.2.3).
  CHECK(activations_of({"plan.interleave=2"}).value() == Approx(alternating.value() * 23.0 / 16.0).epsilon(0.03));
  CHECK(activations_of({"plan.schedule=zero_bubble", "plan.interleave=2"}).value() ==
        Approx(alternating.value()).epsilon(0.06));
  // p + 1 (arXiv 2412.19437, table 2).
  CHECK(activations_of({"plan.schedule=dualpipe"}).value() == Approx(alternating.value() * 9.0 / 8.0).epsilon(0.06));
}

TEST_CASE("DualPipe holds the weights twice, and their states too unless ZeRO divides these over both ends") {
  const MemoryFootprint once = footprint({});
  const MemoryFootprint twice = footprint({"plan.schedule=dualpipe"});
  // The first stage has the embedding of 51,200 words beside 12 of 96 layers; of two chunks one is the last stage's.
  CHECK(twice.weights.value() == Approx(2.0 * once.weights.value()).epsilon(0.03));
  CHECK(twice.optimizer.value() == Approx(2.0 * once.optimizer.value()).epsilon(0.03));
  CHECK(footprint({"plan.schedule=dualpipe", "plan.zero=1"}).optimizer.value() ==
        Approx(footprint({"plan.zero=1"}).optimizer.value()).epsilon(0.03));
}

TEST_CASE("gradients of weights wait with 32 bytes for each token and hidden unit of a GPT block") {
  // arXiv 2401.10241, table 1. Inputs of the four products: 2 + 2 + 2 + 8; gradients of their results: 6 + 2 + 8 + 2.
  // On one of eight tensor ranks the 2 + 2 inputs of a whole hidden width and the 2 + 2 of results are there in full:
  // 8 + 24 / 8 bytes.
  const Scenario scenario = load_scenario("gpt3-175b-1024-a100");
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const Model model = build_model(train.model, build_options(train, scenario.plan));
  CHECK(kept_for_weight_gradients(model.layers[1].layer).value() == Approx((8.0 + 24.0 / 8.0) * 2048 * 12288));
}

TEST_CASE("what gradients of weights wait with counts each product of a batch") {
  Layer layer;
  // Eight experts of 100 tokens: inputs 100 x 32 and gradients 100 x 64 of two bytes.
  layer.backward.push_back(
      {"experts", Matmul{.batch = 8, .m = 32, .n = 64, .k = 100, .transpose_a = true}, Precision::bf16, 1});
  layer.backward.push_back({"inputs", Matmul{.batch = 8, .m = 100, .n = 32, .k = 64}, Precision::bf16, 1});
  CHECK(kept_for_weight_gradients(layer).value() == 2.0 * 8 * 100 * (32 + 64));
}

TEST_CASE("Each group that a GPU communicates in has a communicator beside the context") {
  // GPT-2 XL on 16 GPUs: 800 MiB, and 300 MiB for each group of more than one.
  const auto groups = [](const std::vector<std::string>& overrides) {
    const MemoryTimeline timeline = Training("gpt2-xl-dgx-a100", overrides).timeline();
    return (timeline.moments.front().parts[MemoryPart::context].value() / 1048576.0 - 800.0) / 300.0;
  };
  CHECK(groups({"cluster.nodes=1", "cluster.gpus_per_node=1", "plan.data=1"}) == Approx(0.0).margin(1e-9));
  CHECK(groups({}) == Approx(1.0));                                          // replicas
  CHECK(groups({"plan={ data: 8, pipeline: 2 }"}) == Approx(2.0));           // and stages
  CHECK(groups({"plan={ zero: { stage: 3, shard: 8 } }"}) == Approx(2.0));   // replicas, and two copies of each shard
  CHECK(groups({"plan={ zero: { stage: 3, shard: 16 } }"}) == Approx(1.0));  // one copy
}

TEST_CASE("a pipeline's stages hold whole weights and gradients between micro-batches under ZeRO-3") {
  // 96 layers of 12 · 12288² and the embedding of 51,200 + 2,048 rows, over 8 tensor ranks and 8 stages: of the first
  // stage 12 layers, 2.72 billion parameters and 82 million. Sharded gradients beside the whole ones: 1 + 1/16.
  const std::vector<std::string> sharded = {"plan.zero=3", "plan.sync.gradient_precision=fp32"};
  std::vector<std::string> again = sharded;
  again.emplace_back("plan.reshard_after_forward=true");
  const MemoryFootprint kept = footprint(sharded), gathered = footprint(again);
  const double parameters = (12 * 12.0 * 12288 * 12288 + 53248.0 * 12288) / 8;
  CHECK(kept.gradients.value() == Approx(4.0 * parameters * 17 / 16).epsilon(0.01));
  // Kept gathered, all of a stage's weights are there, not two layers and the embedding alone.
  CHECK(kept.workspace.value() > gathered.workspace.value() + 2.0 * parameters / 2);
}

TEST_CASE("states of experts are divided by the ranks that hold these, and replicated over the rest") {
  // Qwen3 30B on 64 ranks: 48 layers of 128 experts of 3 · 2048 · 768 weights are 28.99 billion parameters, the others
  // 1.54 billion (two tables of 151,936 · 2048, and in each layer 2048 · (4096 + 2 · 512) + 4096 · 2048 for attention,
  // 2048 · 128 for the router and two norms). Bytes each: bf16 weights 2, fp32 gradients 4, fp32 moments and a master
  // copy 12, which ZeRO-1 divides over the 64 ranks, or over the 64 / expert of them that have the same experts: either
  // way a 64th of all.
  const double experts = 48.0 * 128 * 3 * 2048 * 768;
  const double others =
      2.0 * 151936 * 2048 + 2048 + 48.0 * (2048 * (4096 + 1024) + 4096 * 2048 + 2048 * 128 + 2 * 2048);
  for (const int expert : {1, 8, 64}) {
    INFO(expert);
    const Scenario scenario = load_scenario_text(
        "cluster: { node: dgx-h100, nodes: 8 }\n"
        "workload: { train: { model: qwen3-30b-a3b, global_batch: 64, precision: bf16, optimizer: adam } }\n"
        "plan: { data: 64, zero: 1 }\n",
        "experts.yaml", {"plan.expert=" + std::to_string(expert)});
    const auto& train = std::get<TrainWorkload>(scenario.workload);
    const MemoryFootprint memory =
        memory_footprint(scenario, train, build_model(train.model, build_options(train, scenario.plan)));
    CHECK(memory.weights.value() == Approx(2.0 * (others + experts / expert)).epsilon(0.001));
    CHECK(memory.gradients.value() == Approx(4.0 * (others + experts / expert)).epsilon(0.001));
    CHECK(memory.optimizer.value() == Approx(12.0 * (others + experts) / 64.0).epsilon(0.001));
  }
}

TEST_CASE("what parameter servers hold is theirs: fp32 weights and momentum, and sums of gradients") {
  // VGG-16 has 138,357,544 parameters. A ring leaves each GPU a momentum of 4 bytes for every one; servers on
  // processors none. Each of eight on GPUs a weight and a momentum of 4 bytes for an eighth of them.
  constexpr double parameters = 138'357'544.0;
  const auto at = [](const char* placement) {
    return Training("servers-server-beats-ring", {std::string("plan.sync.placement=") + placement}).footprint();
  };
  const MemoryFootprint on_processors = at("cpu"), on_gpus = at("colocated");
  CHECK(on_processors.optimizer.value() == 0.0);
  CHECK(on_gpus.optimizer.value() == Approx(8.0 * parameters / 8.0));
  CHECK(on_gpus.workspace > on_processors.workspace);
  const MemoryFootprint ring = Training("servers-server-beats-ring", {"plan.sync={ algorithm: ring }"}).footprint();
  CHECK(ring.optimizer.value() == Approx(4.0 * parameters));
}

TEST_CASE("ranks that divide sequences add up their gradients in buckets, as replicas do") {
  const auto buckets = [](const char* way, int nodes) {
    const Training training("parallel-hosts", {"plan.tensor=1", way, "cluster.nodes=" + std::to_string(nodes)});
    return training.timeline().moments.front().parts[MemoryPart::communication].value() / training.model.parameters;
  };
  // DistributedDataParallel on processors keeps all of them, of 4 bytes a parameter.
  CHECK(buckets("plan.data=2", 2) == Approx(4.0));
  CHECK(buckets("plan.context=2", 2) == Approx(4.0));
  CHECK(buckets("plan.data=1", 1) == 0.0);
}

TEST_CASE("a processor's heap keeps room for all weights that were gathered") {
  const auto heap = [](const char* zero) {
    const Training training("parallel-hosts", {"plan.tensor=1", "plan.data=2", zero});
    return training.timeline().moments.front().parts[MemoryPart::allocator].value() / training.model.parameters;
  };
  CHECK(heap("plan.zero=3") == Approx(4.0));
  CHECK(heap("plan.zero=1") == 0.0);
}
