#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "reports/explain/what_if.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

class Remedies {
 public:
  explicit Remedies(const Reload& reload) : reload_(reload) {}

  void add(bool sensible, std::string name, std::vector<std::string> overrides) {
    if (sensible) list_.push_back(reloaded(std::move(name), std::move(overrides), reload_));
  }
  std::vector<WhatIf> take() { return std::move(list_); }

 private:
  const Reload& reload_;
  std::vector<WhatIf> list_ = {};
};

/// "halving-doubling" for halving_doubling.
std::string hyphenated(std::string word) {
  std::ranges::replace(word, '_', '-');
  return word;
}

void add_synchronisation(const Scenario& scenario, Remedies& list) {
  const Sync& sync = scenario.plan.sync;
  const bool replicas = replicas_of(scenario.plan) > 1, servers = sync.algorithm == SyncAlgorithm::parameter_server;
  const bool buckets = replicas && !servers && scenario.plan.zero < 3;
  list.add(replicas && !servers && !sync.overlap, "overlap of gradient reduction with the backward pass",
           {"plan.sync.overlap=true"});
  list.add(buckets, "100 MB buckets", {"plan.sync.bucket=100 MB"});
  list.add(buckets, "5 MB buckets", {"plan.sync.bucket=5 MB"});
  list.add(replicas && sync.gradient_precision == Precision::fp32, "gradient reduction in bf16",
           {"plan.sync.gradient_precision=bf16"});
  list.add(buckets && scenario.plan.zero == 0, "PowerSGD of rank 4", {"plan.sync.compression=powersgd(4)"});
  list.add(servers && sync.consistency == Sync::Consistency::synchronous, "asynchronous updates",
           {"plan.sync.consistency=asynchronous"});
  list.add(servers, "2x parameter servers", {fmt::format("plan.sync.servers={}", 2 * sync.servers)});
  for (const char* algorithm : {"auto", "ring", "double_tree", "hierarchical", "halving_doubling"}) {
    // The other keys of parameter servers do not apply to collectives.
    const char* form = servers ? "plan.sync={{ algorithm: {} }}" : "plan.sync.algorithm={}";
    list.add(
        replicas && scenario.plan.zero == 0 && algorithm != name(sync.algorithm),
        algorithm == std::string_view("auto") ? "all-reduce chosen by NCCL" : hyphenated(algorithm) + " all-reduce",
        {fmt::format(fmt::runtime(form), algorithm)});
  }
  list.add(replicas && scenario.plan.zero == 0 && !servers && scenario.plan.pipeline == 1,
           "one parameter server per node",
           {"plan.sync.algorithm=parameter_server", "plan.sync.placement=cpu",
            fmt::format("plan.sync.servers={}", scenario.cluster.nodes)});
}

void add_devices_work(const Scenario& scenario, const TrainWorkload& train, Remedies& list) {
  const Gpu& gpu = scenario.cluster.node.gpu;
  list.add(scenario.plan.execution == ExecutionMode::eager, "compiled execution", {"plan.execution=compiled"});
  list.add(scenario.plan.execution != ExecutionMode::cuda_graph, "CUDA graphs", {"plan.execution=cuda_graph"});
  list.add(!std::holds_alternative<NetworkConfig>(train.model.shape) && train.attention != AttentionKind::flash,
           "FlashAttention", {"workload.train.attention=flash"});
  const bool full = train.precision == Precision::fp32;
  list.add(full && gpu.has_tensor_cores(Precision::tf32), "GEMMs in tf32", {"workload.train.precision=tf32"});
  list.add((full || train.precision == Precision::tf32) && gpu.has_tensor_cores(Precision::bf16), "training in bf16",
           {"workload.train.precision=bf16"});
  list.add((train.precision == Precision::bf16 || train.precision == Precision::fp16) &&
               gpu.has_tensor_cores(Precision::fp8),
           "training in fp8", {"workload.train.precision=fp8"});
  list.add(train.recompute == Recompute::full, "selective recomputation (attention only)",
           {"workload.train.recompute=selective"});
  list.add(train.recompute != Recompute::none, "no recomputation", {"workload.train.recompute=none"});
  list.add(true, "2x micro-batch size", {fmt::format("workload.train.micro_batch={}", 2 * train.micro_batch)});
  list.add(true, "2x global batch", {fmt::format("workload.train.global_batch={}", 2 * train.global_batch)});
}

void add_plan(const Scenario& scenario, Remedies& list) {
  const Plan& plan = scenario.plan;
  const bool plain = plan.schedule == PipelineSchedule::one_forward_one_backward && plan.interleave == 1;
  list.add(plan.pipeline > 1 && plain, "interleaved pipeline (2 chunks per stage)", {"plan.interleave=2"});
  list.add(plan.pipeline > 1 && plain, "zero-bubble schedule", {"plan.schedule=zero_bubble"});
  list.add(plan.tensor > 1 && !plan.sequence_parallel, "sequence parallelism", {"plan.sequence_parallel=true"});
  list.add(plan.tensor > 1 && plan.sequence_parallel && !plan.tensor_overlap,
           fmt::format("overlap of tensor-parallel collectives with GEMMs (in {} chunks)", plan.tensor),
           {"plan.tensor_overlap=true"});
  const bool neighbours = plan.tensor * plan.context * plan.expert < scenario.cluster.gpus_per_node;
  list.add(neighbours && plan.pipeline > 1 && plan.data > 1 && !scenario.where.contains("plan.order"),
           "pipeline stages on neighbouring GPUs", {"plan.order=tensor-context-expert-pipeline-data"});
  const bool shards = replicas_of(plan) > 1 && plan.sync.algorithm != SyncAlgorithm::parameter_server;
  for (int stage = 1; stage <= 3; ++stage) {
    list.add(shards && stage != plan.zero, fmt::format("ZeRO-{}", stage), {fmt::format("plan.zero={}", stage)});
  }
}

/// The bandwidth of a NIC's slot; without limit where the node's file has no PCIe.
BytesPerSecond slot_of(const Node& node) {
  BytesPerSecond widest = node.nic_attachment_link.bandwidth;
  if (widest > BytesPerSecond(0.0)) return widest;
  for (const LinkType& type : node.link_types) {
    if (type.kind == LinkKind::pcie) widest = std::max(widest, type.bandwidth);
  }
  return widest > BytesPerSecond(0.0) ? widest : BytesPerSecond(std::numeric_limits<double>::infinity());
}

void add_hardware(const Scenario& scenario, Remedies& list) {
  const Network& network = scenario.cluster.network;
  const bool several = scenario.cluster.nodes > 1 && scenario.cluster.groups.empty();
  list.add(several && network.oversubscription > 1.0, "no network oversubscription",
           {"cluster.network.oversubscription=1"});
  const BytesPerSecond twice = network.nic_bandwidth * 2.0, slot = slot_of(scenario.cluster.node);
  list.add(several,
           twice > slot ? fmt::format("2x network bandwidth (then limited by PCIe, {})", format_bandwidth(slot))
                        : "2x network bandwidth",
           {fmt::format("cluster.network.nic_bandwidth={} Gbit/s", network.nic_bandwidth.value() * 16e-9)});
}

void add_loading(const TrainWorkload& train, Remedies& list) {
  if (!train.loader) return;
  const DataLoader& loader = *train.loader;
  list.add(true, "2x loader workers",
           {fmt::format("workload.train.loader.workers={}", std::max(1, 2 * loader.workers))});
  list.add(!loader.pinned, "pinned memory for batches", {"workload.train.loader.pinned=true"});
}

}  // namespace

WhatIf reloaded(std::string name, std::vector<std::string> overrides, const Reload& reload) {
  WhatIf made{.name = std::move(name), .overrides = std::move(overrides)};
  try {
    made.scenario = reload(made.overrides);
  } catch (const ScenarioError& e) {  // its place is in no file of the user, and its remedy would undo the change
    made.why_not = fmt::format("{}: {}", e.key(), e.got());
  } catch (const std::exception& e) {
    made.why_not = e.what();
  }
  return made;
}

std::vector<WhatIf> remedies(const Scenario& scenario, const Reload& reload) {
  Remedies list(reload);
  if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    add_devices_work(scenario, *train, list);
    add_synchronisation(scenario, list);
    add_plan(scenario, list);
    add_hardware(scenario, list);
    add_loading(*train, list);
  } else if (std::holds_alternative<CollectiveWorkload>(scenario.workload)) {
    for (const char* algorithm : {"auto", "ring", "double_tree", "halving_doubling", "hierarchical"}) {
      list.add(algorithm != name(scenario.plan.sync.algorithm), "algorithm " + hyphenated(algorithm),
               {fmt::format("workload.collective.algorithm={}", algorithm)});
    }
    add_hardware(scenario, list);
  }
  return list.take();
}

}  // namespace foretrain
