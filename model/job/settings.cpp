// The settings of a prediction as printed.
#include <fmt/format.h>

#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "model/job/job.hpp"

namespace foretrain {

namespace {

class SettingList {
 public:
  explicit SettingList(const Scenario& scenario) : scenario_(scenario) {}

  void begin(std::string line) { line_ = std::move(line); }
  /// A value that is the default where the scenario has none of the keys.
  void add(std::string name, std::string value, std::initializer_list<const char*> keys) {
    bool said = false;
    for (const char* key : keys) said = said || scenario_.where.contains(key);
    list_.push_back({line_, std::move(name), std::move(value), *keys.begin(), !said});
  }
  void add_known(std::string name, std::string value, std::string key, bool by_default) {
    list_.push_back({line_, std::move(name), std::move(value), std::move(key), by_default});
  }
  void add_fact(std::string name, std::string value) {
    list_.push_back({line_, std::move(name), std::move(value), "", false});
  }
  std::vector<Setting> take() { return std::move(list_); }

 private:
  const Scenario& scenario_;
  std::string line_;
  std::vector<Setting> list_;
};

void add_machines(const Cluster& cluster, SettingList& list) {
  list.begin("Nodes");
  const auto add = [&](const Node& node, int nodes, int gpus) {
    list.add_fact("", fmt::format("{} x {}", nodes, node.name));
    const std::string some = gpus < node.gpus ? fmt::format(" ({} of {} per node)", gpus, node.gpus) : "";
    if (gpus > 0) list.add_fact("", fmt::format("{} x {}{}", nodes * gpus, node.gpu.name, some));
  };
  if (cluster.groups.empty()) add(cluster.node, cluster.nodes, cluster.gpus_per_node);
  for (const NodeGroup& group : cluster.groups) add(group.node, group.nodes, group.gpus_per_node);
}

/// "NVSwitch 276 GB/s/GPU achieved": what the first GPU's links carry in one direction.
std::string links_of_gpu(const Node& node) {
  BytesPerSecond fast;
  bool switched = false;
  for (const NodeLink& link : node.links) {
    const LinkType& type = node.link_types[static_cast<std::size_t>(link.type)];
    if ((link.a != 0 && link.b != 0) || (type.kind != LinkKind::nvlink && type.kind != LinkKind::nvswitch)) continue;
    fast += type.bandwidth * link.count;
    const NodeVertex& other = node.vertices[static_cast<std::size_t>(link.a == 0 ? link.b : link.a)];
    switched = switched || other.kind == VertexKind::nvswitch;
  }
  if (!(fast > BytesPerSecond(0.0))) return "PCIe in a node";
  return fmt::format("{} {}/GPU achieved", switched ? "NVSwitch" : node.gpu.link_name(), format_bandwidth(fast));
}

void add_network(const Cluster& cluster, SettingList& list) {
  const auto add = [&](const Node& node, int nodes, int gpus, const Network& network) {
    list.begin("Network");
    if (nodes > 1 && network.nics_per_node > 0) {
      list.add_fact("", fmt::format("{} x {:.4g} Gbit/s NIC{} per node", network.nics_per_node,
                                    network.nic_bandwidth.value() * 8e-9, network.nics_per_node > 1 ? "s" : ""));
      if (network.oversubscription > 1.0) {
        list.add_fact("oversubscription", fmt::format("{:g}", network.oversubscription));
      }
    }
    if (gpus > 1) list.add_fact("", links_of_gpu(node));
  };
  if (cluster.groups.empty()) add(cluster.node, cluster.nodes, cluster.gpus_per_node, cluster.network);
  for (const NodeGroup& group : cluster.groups) add(group.node, cluster.nodes, group.gpus_per_node, group.network);
}

/// For fabrics with several paths between two NICs.
void add_routing(const Cluster& cluster, SettingList& list) {
  const auto add = [&](std::string ways, auto stated, std::string_view word) {
    list.begin("Fabric");
    list.add_fact("", std::move(ways));
    list.add_known("routing", std::string(word), "cluster.network.fabric.routing", !stated.has_value());
  };
  const auto& shape = cluster.network.fabric.shape;
  if (const auto* tree = std::get_if<FatTree>(&shape); tree != nullptr && tree->chooses(cluster)) {
    add(fmt::format("{} uplinks a leaf", tree->uplinks_of(cluster)), tree->routing,
        name(tree->routing.value_or(UplinkRouting::perfect)));
  } else if (const auto* fly = std::get_if<Dragonfly>(&shape); fly != nullptr && fly->chooses(cluster)) {
    add(fmt::format("{} groups", fly->groups), fly->routing, name(fly->routing.value_or(DragonflyRouting::minimal)));
  }
}

/// "tensor-context-expert-pipeline-data", as the key has it.
std::string order_text(const std::array<ParallelDimension, 5>& order) {
  std::string text;
  for (const ParallelDimension one : order) text += fmt::format("{}{}", text.empty() ? "" : "-", name(one));
  return text;
}

void add_plan_settings(const Plan& plan, SettingList& list) {
  list.begin("Plan");
  const auto add_factor = [&](const char* word, int value, const char* key) {
    if (value > 1) list.add(word, std::to_string(value), {key});
  };
  list.add("data", std::to_string(plan.data), {"plan.data"});
  add_factor("tensor", plan.tensor, "plan.tensor");
  add_factor("pipeline", plan.pipeline, "plan.pipeline");
  if (plan.pipeline > 1) {
    list.add("P2P", std::string(name(plan.pipeline_messages)), {"plan.pipeline_messages"});
  }
  if (plan.pipeline > 1) list.add("schedule", std::string(name(plan.schedule)), {"plan.schedule"});
  add_factor("interleave", plan.interleave, "plan.interleave");
  add_factor("context", plan.context, "plan.context");
  if (plan.order != Plan().order) list.add("rank order", order_text(plan.order), {"plan.order"});
  if (plan.context > 1) list.add("context method", std::string(name(plan.context_method)), {"plan.context_method"});
  add_factor("expert", plan.expert, "plan.expert");
  if (plan.expert > 1 || plan.folded_experts) {
    list.add("expert dispatch", std::string(name(plan.expert_dispatch)), {"plan.expert_dispatch"});
    list.add("expert overlap", plan.expert_comm_overlap ? "yes" : "no", {"plan.expert_comm_overlap"});
  }
  if (plan.graphed_parts != GraphedParts::none) {
    list.add("CUDA graphs", std::string(name(plan.graphed_parts)), {"plan.graphed_parts"});
  }
  if (plan.tensor > 1) list.add("sequence parallel", plan.sequence_parallel ? "yes" : "no", {"plan.sequence_parallel"});
  list.add("ZeRO", std::to_string(plan.zero), {"plan.zero"});
  if (replicas_of(plan) > 1 && has_servers(plan.sync.algorithm)) {
    list.add("parameter servers", std::to_string(plan.sync.servers), {"plan.sync.servers"});
    list.add("server placement", std::string(name(plan.sync.placement)), {"plan.sync.placement"});
  }
  if (plan.zero == 2 && replicas_of(plan) > 1) {
    list.add("gradients", divides_gradients(plan) ? "reduce-scattered per micro-batch" : "accumulated",
             {"plan.zero.gradients"});
  }
}

/// The number format of transfers.
std::string on_wire(Precision precision) {
  return fmt::format("{} ({:g} bytes per parameter)", name(precision), bytes_per_element(precision).value());
}

std::string_view words_of(Sync::Gather gather) {
  switch (gather) {
    case Sync::Gather::buckets:
      return "all-gathered per gradient bucket";
    case Sync::Gather::whole:
      return "all-gathered at once";
    case Sync::Gather::owners:
      return "broadcast owner by owner";
    case Sync::Gather::tensors:
      return "broadcast tensor by tensor";
  }
  return "";
}

void add_weight_settings(const Scenario& scenario, SettingList& list) {
  const Plan& plan = scenario.plan;
  const Sync& sync = plan.sync;
  const Precision kept = storage_precision(std::get<TrainWorkload>(scenario.workload).precision);
  const std::string in = on_wire(sync.parameter_precision.value_or(kept));
  const bool pulled = servers_update(plan);
  if (!pulled && plan.zero == 0) return;
  list.begin("Weights");
  if (plan.zero == 1 || plan.zero == 2) {
    list.add("", std::string(words_of(sync.gather)), {"plan.sync.gather"});
    list.add("", sync.gather_overlap ? "overlapping the next forward pass" : "after the optimizer step",
             {"plan.sync.gather_overlap"});
  }
  list.add(pulled ? "pull format" : "format", in, {"plan.sync.parameter_precision"});
}

void add_sync_settings(const Scenario& scenario, SettingList& list) {
  const Plan& plan = scenario.plan;
  if (replicas_of(plan) < 2) return;
  const Sync& sync = plan.sync;
  list.begin("Gradients");
  list.add("algorithm", std::string(name(sync.algorithm)), {"plan.sync.algorithm"});
  if (has_servers(sync.algorithm)) {
    list.add("updates", std::string(name(sync.consistency)), {"plan.sync.consistency"});
  } else if (plan.zero < 3) {
    const bool stated = sync.bucket_rule.empty();
    list.add("buckets", stated ? format_bytes(sync.bucket) : "auto", {"plan.sync.bucket"});
  }
  list.add("reduction", sync.overlap ? "during the backward pass" : "after the backward pass", {"plan.sync.overlap"});
  list.add(servers_update(plan) ? "push format" : "format", on_wire(sync.gradient_precision),
           {"plan.sync.gradient_precision"});
  add_weight_settings(scenario, list);
}

void add_training(const Scenario& scenario, const TrainWorkload& train, SettingList& list) {
  list.begin("Batch");
  list.add("global batch", std::to_string(train.global_batch),
           {"workload.train.global_batch", "workload.train.global_batch_per_gpu"});
  list.add("micro-batch", std::to_string(train.micro_batch), {"workload.train.micro_batch"});
  if (const auto* transformer = std::get_if<TransformerConfig>(&train.model.shape)) {
    list.add_fact("sequence", std::to_string(transformer->sequence));
  }
  const std::int64_t passes = train.global_batch / (std::int64_t{scenario.plan.data} * train.micro_batch);
  if (passes > 1) list.add_fact("accumulation", std::to_string(passes));
  add_plan_settings(scenario.plan, list);
  list.begin("Training");
  list.add("precision", std::string(name(train.precision)), {"workload.train.precision"});
  const bool is_short = train.state_precision != Precision::fp32 && !has_8bit_states(train.optimizer);
  const std::string states = is_short ? fmt::format(", {} states", name(train.state_precision)) : "";
  list.add("optimizer", std::string(name(train.optimizer)) + states,
           {"workload.train.optimizer", "workload.train.state_precision"});
  const RecomputedLayers& some = train.recompute_layers;
  const std::string share = some.of > 0 ? fmt::format(" {} of {}", some.layers, some.of) : "";
  list.add("recompute", std::string(name(train.recompute)) + share, {"workload.train.recompute"});
  if (!std::holds_alternative<NetworkConfig>(train.model.shape)) {
    list.add("attention", std::string(name(train.attention)), {"workload.train.attention"});
  }
  list.add("execution", std::string(name(scenario.plan.execution)), {"plan.execution"});
  if (const auto& samples = train.training_samples) {
    const auto* text = std::get_if<TransformerConfig>(&train.model.shape);
    const bool counts_tokens = text != nullptr && text->family != TransformerFamily::vit && !train.data;
    list.add_known("training length",
                   counts_tokens ? format_count(*samples * static_cast<double>(text->sequence)) + " tokens"
                                 : format_count(*samples) + " samples",
                   "workload.train.samples", false);
  }
  add_sync_settings(scenario, list);
  if (!train.checkpoint || train.checkpoint->mode == Checkpoint::Mode::in_memory) return;
  list.begin("Checkpoints");
  list.add("storage", train.checkpoint->storage.name, {"workload.train.checkpoint.storage"});
}

}  // namespace

std::vector<Setting> settings_of(const Scenario& scenario) {
  SettingList list(scenario);
  add_machines(scenario.cluster, list);
  if (!std::holds_alternative<OperatorWorkload>(scenario.workload)) {
    add_network(scenario.cluster, list);
    add_routing(scenario.cluster, list);
  }
  if (const auto* workload = std::get_if<OperatorWorkload>(&scenario.workload)) {
    const auto* attention = std::get_if<Attention>(&workload->op.work);
    if (attention != nullptr && attention->cached) {
      list.begin("Attention");
      list.add("", "inference engine with KV cache", {"workload.operator.cache"});
    }
  }
  if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    add_training(scenario, *train, list);
    list.begin("Framework");
    const bool named = scenario.where.contains("plan.framework");
    list.add("", named ? scenario.trainer : fmt::format("unspecified; {} defaults", scenario.trainer),
             {"plan.framework"});
  } else if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
    list.begin("Collective");
    list.add_fact("", fmt::format("{} of {}", name(collective->operation), format_bytes(collective->size)));
    list.add("ranks", std::to_string(collective->ranks), {"workload.collective.ranks"});
    list.add("algorithm", std::string(name(scenario.plan.sync.algorithm)),
             {"workload.collective.algorithm", "plan.sync.algorithm"});
  }
  return list.take();
}

}  // namespace foretrain
