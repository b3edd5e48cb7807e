#include "model/scenario/load/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "model/cost/attention.hpp"
#include "model/parallelism/layout.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

/// Whether the scenario itself says it, not its trainer.
bool states(const Scenario& scenario, const std::string& key) {
  const auto trait = std::ranges::find(scenario.traits, key, &Trait::key);
  if (trait != scenario.traits.end() && trait->from != Trait::From::scenario) return false;
  return scenario.where.contains(key);
}

struct Row {
  bool unheeded = false;
  std::string why;
  std::vector<const char*> keys;
};

std::vector<Row> rows_of_collective() {
  return {{true,
           "a collective by itself has algorithm, levels, servers and placement alone",
           {"plan.sync.bucket", "plan.sync.first_bucket", "plan.sync.bucketing", "plan.sync.overlap",
            "plan.sync.every_micro_batch", "plan.sync.copied", "plan.sync.summed_apart", "plan.sync.accumulation",
            "plan.sync.gradient_precision", "plan.sync.gather", "plan.sync.gather_overlap", "plan.sync.consistency",
            "plan.sync.assignment", "plan.sync.split", "plan.sync.priority", "plan.sync.barrier",
            "plan.sync.local_reduce", "plan.sync.slow_workers"}}};
}

std::vector<Row> rows_of_replicas(const Plan& plan) {
  const Sync& sync = plan.sync;
  if (replicas_of(plan) == 1 && !servers_update(plan)) {
    return {{true,
             "one replica synchronises nothing",
             {"plan.sync.algorithm", "plan.sync.bucket", "plan.sync.first_bucket", "plan.sync.bucketing",
              "plan.sync.overlap", "plan.sync.every_micro_batch", "plan.sync.copied", "plan.sync.compression",
              "plan.sync.gather", "plan.sync.gather_overlap"}}};
  }
  const bool updates = plan.zero == 1 || plan.zero == 2;
  return {
      {servers_update(plan),
       "a parameter server is sent gradients key by key (plan.sync.split)",
       {"plan.sync.bucket", "plan.sync.first_bucket", "plan.sync.bucketing", "plan.sync.copied"}},
      {plan.zero == 3,
       "ZeRO-3 sends the gradients of each layer by themselves",
       {"plan.sync.bucket", "plan.sync.first_bucket", "plan.sync.bucketing"}},
      {divides_gradients(plan) && !sync.every_micro_batch,
       fmt::format("ZeRO-{} scatters the gradients of every micro-batch", plan.zero),
       {"plan.sync.every_micro_batch"}},
      {divides_gradients(plan) && sync.summed_apart,
       fmt::format("ZeRO-{} adds up its own part of the gradients alone", plan.zero),
       {"plan.sync.summed_apart"}},
      {!updates,
       fmt::format("ZeRO-{} has no updated weights that come back", plan.zero),
       {"plan.sync.gather", "plan.sync.gather_overlap"}},
  };
}

int divided_dimensions(const Plan& plan) {
  const std::initializer_list<int> factors = {plan.data, plan.tensor, plan.pipeline, plan.context, plan.expert};
  return static_cast<int>(std::ranges::count_if(factors, [](int factor) { return factor > 1; }));
}

std::vector<Row> rows_of_code(const Scenario& scenario, const TrainWorkload& train) {
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
  return {{one_projection, "the model's code has one projection", {"workload.train.joined_projections"}},
          {shape != nullptr && train.code.kernels == KernelSet::fused,
           "fused kernels do all of that",
           {"workload.train.fusions"}},
          {kernel != AttentionKind::flash,
           "the GPUs have no attention kernels of their own generation",
           {"workload.train.native_attention"}},
          {bytes_per_element(kept) == bytes_per_element(Precision::fp32),
           "the weights are used in fp32 themselves",
           {"workload.train.cast_weights"}},
          {servers_update(plan),
           "the servers update the weights",
           {"workload.train.fused_optimizer", "workload.train.clip_gradients"}},
          {plan.context == 1 || !unequal || plan.context_method == ContextMethod::ulysses,
           "no causal sequence is divided among context ranks",
           {"workload.train.context_pieces"}},
          {!gathers || train.precision != Precision::fp8,
           "tensor ranks gather no fp8 operands",
           {"workload.train.narrow_gathers"}},
          {!gathers, "tensor ranks gather no inputs", {"workload.train.keep_gathered"}},
          {train.code.loss.kind != Loss::Kind::eager || (shape != nullptr && !is_causal(shape->family)),
           "a fused loss and one in parts make no copies, and masked words are not shifted",
           {"workload.train.shifted_logits"}},
          {train.code.loss.fused(plan.execution == ExecutionMode::compiled),
           "a fused loss makes no copies",
           {"workload.train.loss_in_place"}},
          {train.master_weights || train.code.cast_weights || has_8bit_states(train.optimizer),
           "states are fp32 beside fp32 weights, or 8 bits",
           {"workload.train.fp32_states"}},
          {!train.parts.lora.has_value(), "no adapters are trained", {"workload.train.fp32_adapters"}},
          {plan.tensor == 1,
           "one tensor rank has no others",
           {"workload.train.waiting_tensors", "workload.train.gather_logits"}}};
}

std::vector<Row> rows_of_model(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  return {
      {scenario.cluster.groups.empty(), "all nodes are alike", {"plan.split"}},
      {plan.pipeline == 1,
       "a pipeline of one stage",
       {"plan.pipeline_messages", "plan.embedding_in_pipeline", "plan.stage_layers", "workload.train.peer_dispatch",
        "workload.train.message_overhead"}},
      {!plan.offload.any(), "nothing is offloaded", {"plan.pinned_offload", "plan.host_threads", "plan.offload_to"}},
      {plan.zero < 3, "weights are not gathered layer by layer", {"plan.gathered_parameters"}},
      {plan.pipeline > 1 && plan.tensor == 1, "one tensor rank has no others", {"workload.train.peer_dispatch"}},
      {divided_dimensions(plan) < 2, "at most one dimension is divided", {"plan.order"}},
      {plan.context == 1, "no sequence is divided among context ranks", {"plan.context_method"}},
      {plan.tensor == 1 && plan.sequence_parallel, "tensor: 1 divides no sequence", {"plan.sequence_parallel"}},
      {!train.model.has_experts(), "the model has no experts", {"plan.expert_tensor"}},
      {plan.execution != ExecutionMode::eager,
       fmt::format("execution {} launches no kernel by itself", name(plan.execution)),
       {"plan.graphed_parts"}},
      {servers_update(plan), "the servers hold what the optimizer needs", {"workload.train.master_weights"}},
      {!servers_update(plan) &&
           bytes_per_element(storage_precision(train.precision)) == bytes_per_element(Precision::fp32),
       "the weights are in fp32 themselves",
       {"workload.train.master_weights"}},
      {micro_batches(train, plan) == 1, "one micro-batch is not added to others", {"plan.sync.accumulation"}},
      {train.recompute == Recompute::none, "nothing is recomputed", {"workload.train.recompute_early_stop"}}};
}

/// Whether nothing but the scenario's own work is on the network.
bool is_by_itself(const Scenario& scenario) { return scenario.background.empty() && scenario.jobs.empty(); }

std::vector<Row> rows_of_network(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const Plan& plan = scenario.plan;
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  const bool reads_and_writes = train != nullptr && (train->loader || train->checkpoint);
  const bool one_machine = cluster.nodes == 1 && is_by_itself(scenario) && !reads_and_writes;
  const int inside = plan.tensor * plan.context;
  const bool gradients_alone =
      train != nullptr && is_by_itself(scenario) && plan.pipeline * plan.expert == 1 && inside <= cluster.gpus_per_node;
  const bool servers_alone = gradients_alone && servers_update(plan) && inside == 1;
  return {{one_machine,
           "one machine sends nothing over a network",
           {"cluster.network.nic_bandwidth", "cluster.network.latency", "cluster.network.oversubscription",
            "cluster.network.efficiency", "cluster.network.scaling", "cluster.network.fairness",
            "cluster.network.queue_pairs", "cluster.network.in_network_reduction", "cluster.network.gpu_direct",
            "cluster.network.transport", "cluster.network.fabric"}},
          {gradients_alone && !one_machine,
           "gradients meet no other traffic between machines",
           {"cluster.network.fairness", "cluster.network.queue_pairs"}},
          {servers_alone && !one_machine, "servers add the gradients up", {"cluster.network.in_network_reduction"}},
          {servers_alone, "gradients go to servers, which no library does", {"cluster.nccl"}},
          {cluster.gpus() == 1, "one GPU has nobody to send to", {"cluster.nccl"}}};
}

std::vector<Row> rows_of(const Scenario& scenario) {
  std::vector<Row> rows = rows_of_network(scenario);
  const auto add = [&](std::vector<Row> more) { std::ranges::move(more, std::back_inserter(rows)); };
  if (std::holds_alternative<CollectiveWorkload>(scenario.workload)) add(rows_of_collective());
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr) return rows;
  add(rows_of_replicas(scenario.plan));
  add(rows_of_model(scenario, *train));
  add(rows_of_code(scenario, *train));
  return rows;
}

}  // namespace

std::vector<std::string> unheeded_keys(const Scenario& scenario) {
  std::vector<std::string> sentences;
  for (const Row& row : rows_of(scenario)) {
    for (const char* key : row.keys) {
      if (row.unheeded && states(scenario, key)) {
        sentences.push_back(fmt::format("{} changes nothing: {}", key, row.why));
      }
    }
  }
  return sentences;
}

}  // namespace foretrain
