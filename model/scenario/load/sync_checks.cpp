#include "model/scenario/load/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/base/words.hpp"
#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

/// What training with parameter servers needs beyond what every use of them needs.
void check_store(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  const Sync& sync = plan.sync;
  const bool servers = has_servers(sync.algorithm);
  fail_if(scenario, train.compute_spread > 0.0 && !servers, "workload.train.compute_spread",
          "unequal workers without a parameter server", "plan.sync.algorithm: parameter_server, or leave the key out");
  if (!servers) return;
  fail_if(scenario, train.checkpoint && !scenario.cluster.failures, "workload.train.checkpoint",
          "checkpoints with a parameter server, which holds the state itself",
          "another plan.sync.algorithm, or leave the key out");
  fail_if(scenario, sync.placement == ServerPlacement::dedicated && sync.servers >= scenario.cluster.nodes,
          "plan.sync.servers", "{0} dedicated servers in a cluster of {1} machines",
          "at most {2}, one a machine beside those that train; or placement: cpu", sync.servers, scenario.cluster.nodes,
          scenario.cluster.nodes - 1);
  if (std::max({plan.tensor, plan.pipeline, plan.context, plan.expert}) > 1) {
    const std::pair<const char*, bool> needs[] = {
        {"plan.sync.consistency", sync.consistency != Sync::Consistency::synchronous},
        {"plan.sync.assignment", sync.assignment != Sync::Assignment::balanced},
        {"plan.sync.split", sync.split != Sync().split},
        {"plan.sync.priority", sync.priority != Sync::Priority::arrival},
        {"plan.sync.barrier", sync.barrier},
        {"plan.sync.local_reduce", sync.local_reduce},
        {"plan.sync.slow_workers", sync.slow_workers.count > 0},
        {"workload.train.compute_spread", train.compute_spread > 0.0}};
    for (const auto& [key, stated] : needs) {
      fail_if(scenario, stated, key, "parameter servers know this for data parallelism only",
              "tensor, pipeline, context and expert of 1, or leave the key out");
    }
    return;
  }
  fail_if(scenario, sync.sync_each_micro_batch, "plan.sync.sync_each_micro_batch",
          "a parameter server that is sent the gradients of each micro-batch",
          "false; a step's gradients are pushed after its last micro-batch");
  const std::int64_t machines = worker_gpus(plan, scenario.cluster) / scenario.cluster.gpus_per_node;
  const std::int64_t workers = sync.local_reduce ? machines : plan.data;
  fail_if(scenario, sync.slow_workers.count > workers, "plan.sync.slow_workers.count", "{0} slow workers of {1}",
          "at most {1}", sync.slow_workers.count, workers);
}

void check_compression(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const Sync& sync = plan.sync;
  fail_if(scenario, sync.sync_each_micro_batch && plan.zero == 2 && plan.zero_gradients == ZeroGradients::kept,
          "plan.sync.sync_each_micro_batch", "gradients that are kept until the last micro-batch, yet scattered",
          "false, or plan.zero: { stage: 2, gradients: scattered }");
  if (synchronises_every_micro_batch(plan) && splits_backward(plan.schedule)) {
    fail(scenario, divides_gradients(plan) ? "plan.zero" : "plan.sync.sync_each_micro_batch",
         fmt::format("gradients that leave after every micro-batch, with {}", name(plan.schedule)),
         divides_gradients(plan) ? "{ stage: 2, gradients: kept }, or schedule: 1f1b" : "false, or schedule: 1f1b");
  }
  fail_if(
      scenario,
      std::holds_alternative<CollectiveWorkload>(scenario.workload) && sync.compression.kind != Compression::Kind::none,
      "plan.sync.compression", "compression of a collective on its own",
      "a training workload, whose gradients can be compressed, or leave the key out");
  if (!sync.compression.needs_whole_gradient()) return;
  const std::string what(name(sync.compression.kind));
  fail_if(scenario, plan.zero > 0, "plan.sync.compression",
          "{} with zero: {}, which leaves each rank a part of the gradients only",
          "zero: 0, or compression: fp16, bf16 or fp8", what, plan.zero);
  if (has_servers(sync.algorithm)) {
    fail(scenario, "plan.sync.compression", what + " with a parameter server; it is a form of all-reduce between peers",
         "another algorithm, or compression: fp16, bf16 or fp8");
  }
}

/// Weights travel as what products read only where one scale serves a whole tensor: Megatron-Core gathers bf16 under
/// mxfp8, whose two copies are scaled along different sides (reuse_grad_buf_for_mxfp8_param_ag), and under nvfp4.
void check_gathered_weights(const Scenario& scenario) {
  const std::optional<Precision> gathered = scenario.plan.sync.parameter_precision;
  if (!gathered) return;
  constexpr const char* key = "plan.sync.parameter_precision";
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  fail_if(scenario, train == nullptr || (scenario.plan.zero == 0 && !servers_update(scenario.plan)), key,
          "nobody gathers or pulls weights", "plan.zero: 1, 2 or 3, a parameter server, or leave the key out");
  const bool one_scale = train->precision == Precision::fp8 && train->recipe.scaling != Fp8Scaling::block;
  fail_if(scenario, *gathered == Precision::fp8 && !one_scale, key, "weights in fp8 without one scale for each tensor",
          "bf16, or workload.train.precision: fp8 with scaling: delayed or current");
}

/// What the plan exchanges beside all-reduces goes by the same algorithm, or not at all.
void check_schedules(const Scenario& scenario) {
  const Sync& sync = scenario.plan.sync;
  if (!std::holds_alternative<TrainWorkload>(scenario.workload) || sync.algorithm == SyncAlgorithm::automatic ||
      has_servers(sync.algorithm)) {
    return;
  }
  const auto require = [&](CollectiveOperation operation, const std::string& why) {
    if (algorithm_of(sync.algorithm).has(operation)) return;
    fail(scenario, "plan.sync.algorithm",
         fmt::format("{} has no {}, which {}", name(sync.algorithm), name(operation), why),
         fmt::format("auto, {}", fmt::join(algorithms_for(operation), ", ")));
  };
  if (scenario.plan.zero > 0) {
    const std::string why = fmt::format("zero: {} needs", scenario.plan.zero);
    require(CollectiveOperation::reduce_scatter, why);
    require(CollectiveOperation::all_gather, why);
  }
  if (sync.compression.kind == Compression::Kind::top_k) {
    require(CollectiveOperation::all_gather, fmt::format("compression: {} needs", name(sync.compression.kind)));
  }
}

/// Servers are placed by plan.sync.placement, over all of the cluster's nodes.
void check_placement(const Scenario& scenario) {
  if (scenario.plan.placement.empty() || !has_servers(scenario.plan.sync.algorithm)) return;
  fail(scenario, "plan.placement", "a list of nodes with parameter servers",
       "a collective as plan.sync.algorithm, or leave the key out");
}

/// Where a key of plan.sync was stated: a collective has some of its own, which overrule the plan's.
std::string sync_key(const Scenario& scenario, std::string_view key) {
  std::string own = fmt::format("workload.collective.{}", key);
  return scenario.where.contains(own) ? own : fmt::format("plan.sync.{}", key);
}

void check_servers(const Scenario& scenario) {
  const Sync& sync = scenario.plan.sync;
  if (!sync.levels.empty() && sync.algorithm != SyncAlgorithm::hierarchical) {
    fail(scenario, sync_key(scenario, "levels"), "levels without a hierarchical algorithm",
         "algorithm: hierarchical, or leave the key out");
  }
  if (!has_servers(sync.algorithm)) return;
  fail_if(scenario, scenario.plan.zero > 0, "plan.zero", "zero {} with a parameter server",
          "zero: 0; the servers hold the optimizer state", scenario.plan.zero);
  fail_if(scenario, scenario.plan.offload.any() && servers_update(scenario.plan), "plan.offload",
          "offloading with a parameter server", "none; the servers hold the optimizer state");
  const bool on_gpus = sync.placement == ServerPlacement::gpu || sync.placement == ServerPlacement::colocated;
  if (on_gpus && sync.servers > scenario.cluster.gpus()) {
    fail(scenario, sync_key(scenario, "servers"),
         fmt::format("{} servers on {} GPUs", sync.servers, scenario.cluster.gpus()),
         fmt::format("at most {}", scenario.cluster.gpus()));
  }
}

}  // namespace

void check_sync(const Scenario& scenario) {
  check_gathered_weights(scenario);
  check_servers(scenario);
  check_placement(scenario);
  check_compression(scenario);
  check_schedules(scenario);
  if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) check_store(scenario, *train);
}

}  // namespace foretrain
