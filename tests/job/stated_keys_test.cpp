// Each stated key has an effect, is refused, or is reported as ignored. Cold caches of a processor after a wait.
#include "model/base/error.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

struct Asked {
  const char* name;
  const char* text;
  std::vector<std::string> same;  ///< keys that mean something, and make no difference to these numbers
};

constexpr const char* model = "workload: { train: { model: llama3-8b, global_batch: 64, micro_batch: 1 } }\n";

const std::vector<Asked>& asked() {
  // Kernels outlast what one process dispatches for eight GPUs; a first bucket ends with the same layer; over two
  // machines NCCL takes rings.
  static const std::vector<std::string> large = {"plan.processes", "plan.sync.first_bucket",
                                                 "workload.train.fused_optimizer",
                                                 "cluster.network.in_network_reduction"};
  // The first stage is the fullest: what the last one's loss takes decides nothing. Stages lie on one machine.
  static const std::vector<std::string> stages = {"plan.processes",
                                                  "plan.sync.first_bucket",
                                                  "workload.train.fused_optimizer",
                                                  "workload.train.inplace_cross_entropy",
                                                  "cluster.network.fairness",
                                                  "cluster.network.queue_pairs",
                                                  "cluster.network.in_network_reduction"};
  // Servers take longer to add up than a third of the cards takes to send.
  static const std::vector<std::string> servers = {"plan.processes", "plan.sync.first_bucket",
                                                   "workload.train.fused_optimizer", "cluster.network.efficiency",
                                                   "cluster.network.scaling"};
  static const std::vector<Asked> all = {
      {"data", "cluster: { node: dgx-h100, nodes: 2 }\n", large},
      {"ZeRO-1", "cluster: { node: dgx-h100, nodes: 2 }\nplan: { tensor: 2, zero: 1 }\n", large},
      {"ZeRO-2", "cluster: { node: dgx-h100, nodes: 2 }\nplan: { tensor: 2, zero: 2 }\n", large},
      {"ZeRO-3", "cluster: { node: dgx-h100, nodes: 2 }\nplan: { zero: 3 }\n", large},
      {"stages", "cluster: { node: dgx-a100-80gb, nodes: 2 }\nplan: { tensor: 2, pipeline: 4 }\n", stages},
      {"servers",
       "cluster: { node: dgx-a100-80gb, nodes: 2 }\nplan: { sync: { algorithm: parameter_server, servers: 4 } }\n",
       servers},
      {"one GPU", "cluster: { node: dgx-h100, nodes: 1, gpus_per_node: 1 }\n", large}};
  return all;
}

struct Stated {
  const char* key;
  std::vector<std::string> values;  ///< one of them differs from what is assumed
};

const std::vector<Stated> stated = {
    {"plan.sync.algorithm", {"ring", "naive"}},
    {"plan.sync.bucket", {"1 MB", "whole"}},
    {"plan.sync.first_bucket", {"1 MB"}},
    {"plan.sync.bucketing", {"by_tensor"}},
    {"plan.sync.overlap", {"false", "true"}},
    {"plan.sync.sync_each_micro_batch", {"true", "false"}},
    {"plan.sync.separate_bucket_buffers", {"true", "false"}},
    {"plan.sync.fp32_accumulation", {"true"}},
    {"plan.sync.accumulation", {"added"}},
    {"plan.sync.gradient_precision", {"bf16", "fp16"}},
    {"plan.sync.parameter_precision", {"fp32"}},
    {"plan.sync.gather", {"owners", "tensors"}},
    {"plan.sync.gather_overlap", {"true"}},
    {"plan.sync.compression", {"fp8", "powersgd(4)"}},
    {"plan.sync.split", {"1 MB"}},
    {"plan.sync.servers", {"2"}},
    {"plan.tensor_overlap", {"true"}},
    {"plan.pipeline_messages", {"blocking"}},
    {"plan.expert_dispatch", {"all_to_all"}},
    {"plan.expert_comm_overlap", {"true"}},
    {"plan.expert_tensor", {"1"}},
    {"plan.schedule", {"gpipe", "zero_bubble"}},
    {"plan.embedding_in_pipeline", {"true"}},
    {"plan.stage_layers", {"by_speed", "[9, 8, 8, 7]"}},
    {"plan.sequence_parallel", {"true"}},
    {"plan.reshard_after_forward", {"false"}},
    {"plan.offload", {"optimizer"}},
    {"plan.execution", {"compiled"}},
    {"plan.graphed_parts", {"router", "attention"}},
    {"plan.processes", {"single"}},
    {"plan.order", {"pipeline-data-tensor-context-expert"}},
    {"plan.split", {"proportional"}},
    {"workload.train.optimizer", {"sgd", "lamb", "lars", "muon"}},
    {"workload.train.state_precision", {"bf16"}},
    {"workload.train.recompute_layers", {"1 of 2"}},
    {"workload.train.recompute", {"full"}},
    {"workload.train.recompute_early_stop", {"true"}},
    {"workload.train.kernels", {"plain"}},
    {"workload.train.fusions", {"norm"}},
    {"workload.train.fused_qkv", {"false"}},
    {"workload.train.native_attention", {"false"}},
    {"workload.train.cache_cast_weights", {"true"}},
    {"workload.train.fused_optimizer", {"false"}},
    {"workload.train.clip_gradients", {"false"}},
    {"workload.train.deterministic", {"true"}},
    {"workload.train.context_sharding", {"in_order"}},
    {"plan.context_method", {"all_gather", "ulysses"}},
    {"workload.train.fp8_all_gather", {"false"}},
    {"workload.train.keep_gathered_inputs", {"true"}},
    {"workload.train.master_weights", {"false"}},
    {"workload.train.layer_overhead", {"1 ms"}},
    {"workload.train.layer_dispatch", {"1 s"}},
    {"workload.train.p2p_dispatch_overhead", {"1 s"}},
    {"workload.train.message_overhead", {"1 ms"}},
    {"workload.train.memory_stretch", {"1.5"}},
    {"workload.train.kernel_slowdown", {"1.5"}},
    {"workload.train.reserved_memory", {"1 GB"}},
    {"workload.train.activation_stretch", {"1.3"}},
    {"workload.train.pending_stream_buffers", {"50"}},
    {"workload.train.inplace_cross_entropy", {"true"}},
    {"workload.train.attention", {"standard"}},
    {"workload.train.expert_imbalance", {"1.5"}},
    {"cluster.network.nic_bandwidth", {"10 Gbit/s"}},
    {"cluster.network.latency", {"1 ms"}},
    {"cluster.network.oversubscription", {"8"}},
    {"cluster.network.efficiency", {"0.3"}},
    {"cluster.network.scaling", {"{ 2: 40 % }"}},
    {"cluster.network.fairness", {"traffic_class"}},
    {"cluster.network.queue_pairs", {"8"}},
    {"cluster.network.in_network_reduction", {"true", "false"}},
    {"cluster.network.gpu_direct", {"false"}},
    {"cluster.network.transport", {"{ protocol: tcp }"}},
    {"cluster.network.fabric", {"{ kind: fat_tree, nodes_per_leaf: 1, oversubscription: 8 }"}},
    {"cluster.nccl", {"2.10"}},
};

/// Time, its parts, and memory: to nine digits, since sums in another order differ in their last.
struct Numbers {
  std::vector<double> of;
  explicit Numbers(const TrainResult& train) {
    const MemoryFootprint& memory = train.memory;
    of = {train.step_time.value(),  memory.weights.value(),     memory.gradients.value(),
          memory.optimizer.value(), memory.activations.value(), memory.workspace.value()};
    for (const auto& [name, transfer] : train.communication) {
      of.push_back(transfer.total.value());
      of.push_back(transfer.exposed.value());
    }
  }
  [[nodiscard]] bool same_as(const Numbers& other) const {
    return std::ranges::equal(of, other.of, [](double a, double b) { return a == Approx(b).epsilon(1e-9); });
  }
};

/// Nothing where the scenario is refused.
std::optional<Result> answer(const Asked& asked, const std::vector<std::string>& overrides) {
  try {
    return estimate(load_scenario_text(std::string(asked.text) + model, "asked.yaml", overrides));
  } catch (const ScenarioError&) {
    return std::nullopt;
  }
}

bool says(const Result& result, const std::string& key) {
  return std::ranges::any_of(result.warnings,
                             [&](const std::string& warning) { return warning.starts_with(key + " changes nothing"); });
}

std::string complaint(const std::string& workload, const std::string& plan) {
  const std::string text = "cluster: { node: dgx-a100-80gb, nodes: 2 }\nworkload: " + workload + "\n" + plan;
  return test::complaint_of([&] { make_job(load_scenario_text(text, "s.yaml"), Fidelity::estimate); });
}

/// Seconds by which a step of four hosts divided this way computes longer for a millisecond more after each wait.
double longer(const std::string& way) {
  const auto computed = [&](const char* after_wait) {
    const Scenario scenario = load_scenario(
        "parallel-hosts",
        {fmt::format("cluster.node.gpu.processor.after_wait={}", after_wait), "cluster.nodes=4", "plan.tensor=1", way});
    return estimate(scenario).train()->breakdown.compute.value();
  };
  return computed("2 ms") - computed("1 ms");
}

}  // namespace

TEST_CASE("no key of a plan, a training or a network is passed over in silence, and none is called idle that is not") {
  for (const Asked& one : asked()) {
    const Numbers before(*answer(one, {})->train());
    for (const Stated& row : stated) {
      CAPTURE(one.name, row.key);
      bool heeded = std::ranges::find(one.same, row.key) != one.same.end();
      for (const std::string& value : row.values) {
        const std::optional<Result> result = answer(one, {fmt::format("{}={}", row.key, value)});
        const bool same = result && before.same_as(Numbers(*result->train()));
        CAPTURE(value);
        if (result && says(*result, row.key)) CHECK(same);
        heeded = heeded || !same || says(*result, row.key);
      }
      CHECK(heeded);
    }
  }
}

TEST_CASE("What cannot be carried out is reported at the key that asked for it") {
  const std::string network = "{ train: { model: resnet-50, global_batch: 64 } }";
  CHECK_THAT(complaint(network, "plan: { tensor: 2 }\n"),
             Catch::StartsWith("s.yaml:3:") && Catch::Contains("plan.tensor: 2 for a network that is no transformer"));
  // A DGX A100's switches add nothing up; the reader knows nothing of schedules, the schedule nothing of keys.
  CHECK_THAT(complaint("{ collective: { operation: all_reduce, size: 1 GB, algorithm: in_network } }", ""),
             Catch::StartsWith("s.yaml:2:") && Catch::Contains("workload.collective.algorithm: in_network"));
  CHECK(complaint(network, "plan: { data: 16 }\n") == "accepted");
}

TEST_CASE("a core that has waited for tensor ranks computes longer after each collective") {
  // Two of each layer's passes, one of the embedding, four of the head and its loss.
  CHECK(longer("plan.tensor=4") == Approx((8 * 4 + 1 + 4) * 1e-3));
  // Gradients are added up beside the backward pass, which does not wait for them.
  CHECK(longer("plan.data=4") == 0.0);
}

TEST_CASE("a core that passes keys and values round a ring waits once for each that it receives") {
  // Three rounds a layer (two of them backward) of three messages, beside which the core computes more slowly.
  CHECK(longer("plan.context=4") >= 8 * 3 * 3 * 1e-3);
  CHECK(longer("plan.context=4") < 1.3 * 8 * 3 * 3 * 1e-3);
}
