#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "model/cost/attention.hpp"
#include "model/parallelism/layout.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

/// Sentences about keys that the scenario itself states, not its trainer.
class UnheededKeys {
 public:
  explicit UnheededKeys(const Scenario& scenario) : scenario_(scenario) {}

  /// Keys below `mapping`.
  void add(bool unheeded, std::string_view why, std::string_view mapping,
           std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      const std::string dotted = unheeded ? join_path(mapping, key) : "";
      if (unheeded && states(dotted)) sentences_.push_back(fmt::format("{} changes nothing: {}", dotted, why));
    }
  }
  std::vector<std::string> take() && { return std::move(sentences_); }

 private:
  [[nodiscard]] bool states(const std::string& key) const {
    const auto trait = std::ranges::find(scenario_.traits, key, &Trait::key);
    const bool own = trait == scenario_.traits.end() || trait->from == Trait::From::scenario;
    return own && scenario_.where.contains(key);
  }

  const Scenario& scenario_;
  std::vector<std::string> sentences_;
};

constexpr std::string_view of_network = "cluster.network", of_plan = "plan", of_sync = "plan.sync",
                           of_training = "workload.train";

/// Whether nothing but the scenario's own work is on the network.
bool is_by_itself(const Scenario& scenario) { return scenario.background.empty() && scenario.jobs.empty(); }

void add_network(const Scenario& scenario, UnheededKeys& unheeded) {
  const Cluster& cluster = scenario.cluster;
  const Plan& plan = scenario.plan;
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  const bool reads_and_writes = train != nullptr && (train->loader || train->checkpoint);
  const bool one_machine = cluster.nodes == 1 && is_by_itself(scenario) && !reads_and_writes;
  const int inside = plan.tensor * plan.context;
  const bool gradients_alone =
      train != nullptr && is_by_itself(scenario) && plan.pipeline * plan.expert == 1 && inside <= cluster.gpus_per_node;
  const bool servers_alone = gradients_alone && servers_update(plan) && inside == 1;
  unheeded.add(one_machine, "one machine sends nothing over a network", of_network,
               {"nic_bandwidth", "latency", "oversubscription", "efficiency", "scaling", "fairness", "queue_pairs",
                "in_network_reduction", "gpu_direct", "transport", "fabric"});
  unheeded.add(gradients_alone && !one_machine, "gradients meet no other traffic between machines", of_network,
               {"fairness", "queue_pairs"});
  unheeded.add(servers_alone && !one_machine, "servers add the gradients up", of_network, {"in_network_reduction"});
  unheeded.add(servers_alone, "gradients go to servers, which no library does", "cluster", {"nccl"});
  unheeded.add(cluster.gpus() == 1, "one GPU has nobody to send to", "cluster", {"nccl"});
}

void add_replicas(const Plan& plan, UnheededKeys& unheeded) {
  if (replicas_of(plan) == 1 && !servers_update(plan)) {
    unheeded.add(true, "one replica synchronises nothing", of_sync,
                 {"algorithm", "bucket", "first_bucket", "bucketing", "overlap", "every_micro_batch", "copied",
                  "compression", "gather", "gather_overlap"});
    return;
  }
  const bool divides = divides_gradients(plan);
  unheeded.add(servers_update(plan), "a parameter server is sent gradients key by key (plan.sync.split)", of_sync,
               {"bucket", "first_bucket", "bucketing", "copied"});
  unheeded.add(plan.zero == 3, "ZeRO-3 sends the gradients of each layer by themselves", of_sync,
               {"bucket", "first_bucket", "bucketing"});
  unheeded.add(divides && !plan.sync.every_micro_batch,
               fmt::format("ZeRO-{} scatters the gradients of every micro-batch", plan.zero), of_sync,
               {"every_micro_batch"});
  unheeded.add(divides && plan.sync.summed_apart,
               fmt::format("ZeRO-{} adds up its own part of the gradients alone", plan.zero), of_sync,
               {"summed_apart"});
  unheeded.add(plan.zero != 1 && plan.zero != 2,
               fmt::format("ZeRO-{} has no updated weights that come back", plan.zero), of_sync,
               {"gather", "gather_overlap"});
}

int divided_dimensions(const Plan& plan) {
  const std::initializer_list<int> factors = {plan.data, plan.tensor, plan.pipeline, plan.context, plan.expert};
  return static_cast<int>(std::ranges::count_if(factors, [](int factor) { return factor > 1; }));
}

void add_plan(const Scenario& scenario, const TrainWorkload& train, UnheededKeys& unheeded) {
  const Plan& plan = scenario.plan;
  const bool in_fp32 = bytes_per_element(storage_precision(train.precision)) == bytes_per_element(Precision::fp32);
  const std::string one_stage = "a pipeline of one stage", no_others = "one tensor rank has no others";
  unheeded.add(scenario.cluster.groups.empty(), "all nodes are alike", of_plan, {"split"});
  unheeded.add(plan.pipeline == 1, one_stage, of_plan, {"pipeline_messages", "embedding_in_pipeline", "stage_layers"});
  unheeded.add(plan.pipeline == 1, one_stage, of_training, {"peer_dispatch", "message_overhead"});
  unheeded.add(!plan.offload.any(), "nothing is offloaded", of_plan, {"pinned_offload", "host_threads", "offload_to"});
  unheeded.add(plan.zero < 3, "weights are not gathered layer by layer", of_plan, {"gathered_parameters"});
  unheeded.add(plan.pipeline > 1 && plan.tensor == 1, no_others, of_training, {"peer_dispatch"});
  unheeded.add(divided_dimensions(plan) < 2, "at most one dimension is divided", of_plan, {"order"});
  unheeded.add(plan.context == 1, "no sequence is divided among context ranks", of_plan, {"context_method"});
  unheeded.add(plan.tensor == 1 && plan.sequence_parallel, "tensor: 1 divides no sequence", of_plan,
               {"sequence_parallel"});
  unheeded.add(!train.model.has_experts(), "the model has no experts", of_plan, {"expert_tensor"});
  unheeded.add(plan.execution != ExecutionMode::eager,
               fmt::format("execution {} launches no kernel by itself", name(plan.execution)), of_plan,
               {"graphed_parts"});
  unheeded.add(servers_update(plan), "the servers hold what the optimizer needs", of_training, {"master_weights"});
  unheeded.add(!servers_update(plan) && in_fp32, "the weights are in fp32 themselves", of_training, {"master_weights"});
  unheeded.add(micro_batches(train, plan) == 1, "one micro-batch is not added to others", of_sync, {"accumulation"});
  unheeded.add(train.recompute == Recompute::none, "nothing is recomputed", of_training, {"recompute_early_stop"});
}

void add_code(const Scenario& scenario, const TrainWorkload& train, UnheededKeys& unheeded) {
  const Plan& plan = scenario.plan;
  const auto* shape = std::get_if<TransformerConfig>(&train.model.shape);
  const bool one_projection = shape != nullptr && shape->family == TransformerFamily::gpt && !shape->gated_ffn;
  const bool unequal = shape == nullptr || (is_causal(shape->family) && shape->window == 0);
  const bool gathers = plan.tensor > 1 && plan.sequence_parallel;
  const Precision kept = storage_precision(train.precision);
  Attention work;
  work.kind = train.attention;
  work.biased = shape != nullptr && shape->family == TransformerFamily::mpt;
  const AttentionKind kernel = attention_kernel(work, kept, scenario.cluster.node.gpu);
  const auto add = [&](bool is_unheeded, std::string_view why, std::initializer_list<std::string_view> keys) {
    unheeded.add(is_unheeded, why, of_training, keys);
  };
  add(one_projection, "the model's code has one projection", {"joined_projections"});
  add(shape != nullptr && train.code.kernels == KernelSet::fused, "fused kernels do all of that", {"fusions"});
  add(kernel != AttentionKind::flash, "the GPUs have no attention kernels of their own generation",
      {"native_attention"});
  add(bytes_per_element(kept) == bytes_per_element(Precision::fp32), "the weights are used in fp32 themselves",
      {"cast_weights"});
  add(servers_update(plan), "the servers update the weights", {"fused_optimizer", "clip_gradients"});
  add(plan.context == 1 || !unequal || plan.context_method == ContextMethod::ulysses,
      "no causal sequence is divided among context ranks", {"context_pieces"});
  add(!gathers || train.precision != Precision::fp8, "tensor ranks gather no fp8 operands", {"narrow_gathers"});
  add(!gathers, "tensor ranks gather no inputs", {"keep_gathered"});
  add(train.code.loss.kind != Loss::Kind::eager || (shape != nullptr && !is_causal(shape->family)),
      "a fused loss and one in parts make no copies, and masked words are not shifted", {"shifted_logits"});
  add(train.code.loss.fused(plan.execution == ExecutionMode::compiled), "a fused loss makes no copies",
      {"loss_in_place"});
  add(train.master_weights || train.code.cast_weights || has_8bit_states(train.optimizer),
      "states are fp32 beside fp32 weights, or 8 bits", {"fp32_states"});
  add(!train.parts.lora.has_value(), "no adapters are trained", {"fp32_adapters"});
  add(plan.tensor == 1, "one tensor rank has no others", {"waiting_tensors", "gather_logits"});
}

}  // namespace

std::vector<std::string> unheeded_keys(const Scenario& scenario) {
  UnheededKeys unheeded(scenario);
  add_network(scenario, unheeded);
  unheeded.add(std::holds_alternative<CollectiveWorkload>(scenario.workload),
               "a collective by itself has algorithm, levels, servers and placement alone", of_sync,
               {"bucket", "first_bucket", "bucketing", "overlap", "every_micro_batch", "copied", "summed_apart",
                "accumulation", "gradient_precision", "gather", "gather_overlap", "consistency", "assignment", "split",
                "priority", "barrier", "local_reduce", "slow_workers"});
  if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    add_replicas(scenario.plan, unheeded);
    add_plan(scenario, *train, unheeded);
    add_code(scenario, *train, unheeded);
  }
  return std::move(unheeded).take();
}

}  // namespace foretrain
