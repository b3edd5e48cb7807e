// Synchronisation, failures, work that is divided by speed, layers of stages; keys that change nothing.
#include "model/scenario/load/checks.hpp"

#include <numeric>

#include "model/collectives/algorithm.hpp"
#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

class TrainingChecks : CheckedScenario {
 public:
  explicit TrainingChecks(const Scenario& one) : CheckedScenario{one} {}

  void run() const {
    check_split();
    check_failures();
    check_sync();
  }

 private:
  /// What training with parameter servers needs beyond what every use of them needs.
  void check_store() const {
    fail_if(train->compute_spread > 0.0 && !servers, "workload.train.compute_spread",
            "unequal workers without a parameter server",
            "plan.sync.algorithm: parameter_server, or leave the key out");
    if (!servers) return;
    fail_if(train->checkpoint && !cluster.failures, "workload.train.checkpoint",
            "checkpoints with a parameter server, which holds the state itself",
            "another plan.sync.algorithm, or leave the key out");
    fail_if(sync.placement == ServerPlacement::dedicated && sync.servers >= cluster.nodes, "plan.sync.servers",
            "{0} dedicated servers in a cluster of {1} machines",
            "at most {2}, one per machine that does not train; or placement: cpu", sync.servers, cluster.nodes,
            cluster.nodes - 1);
    if (std::max({plan.tensor, plan.pipeline, plan.context, plan.expert}) > 1) {
      const std::pair<const char*, bool> needs[] = {
          {"plan.sync.consistency", sync.consistency != Sync::Consistency::synchronous},
          {"plan.sync.assignment", sync.assignment != Sync::Assignment::balanced},
          {"plan.sync.split", sync.split != Sync().split},
          {"plan.sync.priority", sync.priority != Sync::Priority::arrival},
          {"plan.sync.barrier", sync.barrier},
          {"plan.sync.local_reduce", sync.local_reduce},
          {"plan.sync.slow_workers", sync.slow_workers.count > 0},
          {"workload.train.compute_spread", train->compute_spread > 0.0}};
      for (const auto& [key, stated] : needs) {
        fail_if(stated, key, "parameter servers support this with data parallelism alone",
                "tensor, pipeline, context and expert of 1, or leave the key out");
      }
      return;
    }
    fail_if(sync.sync_each_micro_batch, "plan.sync.sync_each_micro_batch",
            "a parameter server that is sent the gradients of each micro-batch",
            "false; a step's gradients are pushed after its last micro-batch");
    const std::int64_t machines = worker_gpus(plan, cluster) / cluster.gpus_per_node;
    const std::int64_t workers = sync.local_reduce ? machines : plan.data;
    fail_if(sync.slow_workers.count > workers, "plan.sync.slow_workers.count", "{0} slow workers of {1}", "at most {1}",
            sync.slow_workers.count, workers);
  }

  void check_compression() const {
    fail_if(sync.sync_each_micro_batch && plan.zero == 2 && plan.zero_gradients == ZeroGradients::kept,
            "plan.sync.sync_each_micro_batch", "gradients that are kept until the last micro-batch, yet scattered",
            "false, or plan.zero: { stage: 2, gradients: scattered }");
    fail_if(synchronises_every_micro_batch(plan) && splits_backward(plan.schedule),
            divides_gradients(plan) ? "plan.zero" : "plan.sync.sync_each_micro_batch",
            "gradients that leave after every micro-batch, with {}", "{1}, or schedule: 1f1b", name(plan.schedule),
            divides_gradients(plan) ? "{ stage: 2, gradients: kept }" : "false");
    fail_if(std::holds_alternative<CollectiveWorkload>(scenario.workload) &&
                sync.compression.kind != Compression::Kind::none,
            "plan.sync.compression", "compression of a collective on its own",
            "a training workload, whose gradients can be compressed, or leave the key out");
    if (!sync.compression.needs_whole_gradient()) return;
    const std::string what(name(sync.compression.kind));
    fail_if(plan.zero > 0, "plan.sync.compression",
            "{} with zero: {}, which leaves each rank a part of the gradients only",
            "zero: 0, or compression: fp16, bf16 or fp8", what, plan.zero);
    fail_if(servers, "plan.sync.compression", "{} with a parameter server; it is a form of all-reduce between peers",
            "another algorithm, or compression: fp16, bf16 or fp8", what);
  }

  /// Weights travel as what products read only where one scale serves a whole tensor: Megatron-Core gathers bf16 under
  /// mxfp8, whose two copies are scaled along different sides (reuse_grad_buf_for_mxfp8_param_ag), and under nvfp4.
  void check_gathered_weights() const {
    const std::optional<Precision> gathered = sync.parameter_precision;
    if (!gathered) return;
    constexpr const char* key = "plan.sync.parameter_precision";
    fail_if(train == nullptr || (plan.zero == 0 && !servers_update(plan)), key, "no rank gathers or pulls weights",
            "plan.zero: 1, 2 or 3, a parameter server, or leave the key out");
    const bool one_scale = train->precision == Precision::fp8 && train->recipe.scaling != Fp8Scaling::block;
    fail_if(*gathered == Precision::fp8 && !one_scale, key, "weights in fp8 without one scale for each tensor",
            "bf16, or workload.train.precision: fp8 with scaling: delayed or current");
  }

  /// What the plan exchanges beside all-reduces goes by the same algorithm, or not at all.
  void check_schedules() const {
    if (train == nullptr || sync.algorithm == SyncAlgorithm::automatic || servers) return;
    const auto require = [&](CollectiveOperation operation, const std::string& why) {
      fail_if(!algorithm_of(sync.algorithm).has(operation), "plan.sync.algorithm", "{} has no {}, which {}",
              "auto, {3}", name(sync.algorithm), name(operation), why,
              fmt::format("{}", fmt::join(algorithms_for(operation), ", ")));
    };
    if (plan.zero > 0) {
      const std::string why = fmt::format("zero: {} needs", plan.zero);
      require(CollectiveOperation::reduce_scatter, why);
      require(CollectiveOperation::all_gather, why);
    }
    if (sync.compression.kind == Compression::Kind::top_k) {
      require(CollectiveOperation::all_gather, fmt::format("compression: {} needs", name(sync.compression.kind)));
    }
  }

  /// Where a key of plan.sync was stated: a collective has some of its own, which overrule the plan's.
  std::string sync_key(std::string_view key) const {
    std::string own = fmt::format("workload.collective.{}", key);
    return scenario.where.contains(own) ? own : fmt::format("plan.sync.{}", key);
  }

  void check_servers() const {
    fail_if(!sync.levels.empty() && sync.algorithm != SyncAlgorithm::hierarchical, sync_key("levels"),
            "levels without a hierarchical algorithm", "algorithm: hierarchical, or leave the key out");
    if (!servers) return;
    fail_if(plan.zero > 0, "plan.zero", "zero {} with a parameter server",
            "zero: 0; the servers hold the optimizer state", plan.zero);
    fail_if(plan.offload.any() && servers_update(plan), "plan.offload", "offloading with a parameter server",
            "none; the servers hold the optimizer state");
    const bool on_gpus = sync.placement == ServerPlacement::gpu || sync.placement == ServerPlacement::colocated;
    fail_if(on_gpus && sync.servers > cluster.gpus(), sync_key("servers"), "{0} servers on {1} GPUs", "at most {1}",
            sync.servers, cluster.gpus());
  }

  void check_sync() const {
    check_gathered_weights();
    check_servers();
    fail_if(!plan.placement.empty() && servers, "plan.placement", "a list of nodes with parameter servers",
            "a collective as plan.sync.algorithm, or leave the key out");
    check_compression();
    check_schedules();
    if (train != nullptr) check_store();
  }

  /// A checkpoint is no checkpoint if a part of it is gone with the machine that failed.
  void check_outlives_machines(const Checkpoint& checkpoint) const {
    if (checkpoint.mode == Checkpoint::Mode::in_memory || checkpoint.storage.kind == StorageKind::network) return;
    const Failures& failures = *cluster.failures;
    for (std::size_t i = 0; i < failing_parts; ++i) {
      const auto part = static_cast<FailingPart>(i);
      fail_if(takes_machine(part) && is_finite(failures.mtbf[i]), "workload.train.checkpoint.storage",
              "disks in the machines, lost with them when a {} fails",
              "storage over a network, such as object-store (the default), or mode: in_memory", name(part));
    }
  }

  /// Their calibration differs from the GPUs', which that of the first nodes holds for.
  void check_processors() const {
    const auto trains = [](const NodeGroup& group) { return group.node.gpu.processor.has_value(); };
    const std::vector<NodeGroup>& groups = cluster.groups;
    if (std::ranges::none_of(groups, trains)) return;
    fail_if(trains(groups.front()) && !std::ranges::all_of(groups, trains), "cluster.groups",
            "processors that train before GPUs", "the group of GPUs first, or cluster.node");
    fail_if(std::max({plan.tensor, plan.pipeline, plan.context, plan.expert}) > 1 || plan.zero > 0, "cluster.groups",
            "processors that train beside other nodes, with a model that is divided",
            "data parallelism alone, or cluster.node");
  }

  void check_failures() const {
    const bool fails = cluster.failures.has_value();
    if (train == nullptr) {
      fail_if(fails, "cluster.failures", "failures in a scenario that trains nothing", "workload: { train: … }");
      return;
    }
    if (train->checkpoint && train->checkpoint->mode == Checkpoint::Mode::in_memory) {
      fail_if(cluster.nodes < 2, "workload.train.checkpoint.mode", "a machine without a neighbour to hold its state",
              "asynchronous or synchronous, or two nodes");
      fail_if(servers, "workload.train.checkpoint.mode", "servers' state in the memory of other machines",
              "workload.train.recovery: { servers: replicated }");
    }
    if (!fails) {
      fail_if(train->checkpoint && train->checkpoint->best_interval, "workload.train.checkpoint.every",
              "the best interval without failures", "a number of steps, or cluster.failures");
      return;
    }
    if (train->checkpoint) check_outlives_machines(*train->checkpoint);
    fail_if(!scenario.jobs.empty(), "cluster.failures", "failures with other jobs", "one of the two keys");
    const bool replicated = train->recovery->servers == Recovery::Servers::replicated;
    fail_if(replicated && !servers, "workload.train.recovery.servers", "replicated servers where there are none",
            "plan.sync.algorithm: parameter_server, or leave the key out");
    fail_if(!train->checkpoint && !replicated, "cluster.failures", "failures in a training that saves nothing",
            "workload.train.checkpoint: {{ every: auto }}{}",
            servers ? ", or workload.train.recovery: { servers: replicated }" : "");
  }

  void check_split() const {
    check_processors();
    if (!plan.split) return;
    fail_if(plan.pipeline > 1, "plan.split", "micro-batches divided unequally between pipelines",
            "plan.stage_layers: by_speed");
    fail_if(servers, "plan.split", "a split with parameter servers", "plan.sync.slow_workers, or a collective");
    fail_if(synchronises_every_micro_batch(plan), "plan.split",
            "a split with gradients that are synchronised after every micro-batch",
            divides_gradients(plan) ? "plan.zero: { stage: 2, gradients: kept }"
                                    : "plan.sync.sync_each_micro_batch: false");
  }
};

}  // namespace

void check_training(const Scenario& scenario) { TrainingChecks(scenario).run(); }

void check_stage_layers(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr || plan.stage_layers.empty()) return;
  const Model model = build_model(train->model, build_options(*train, plan));
  int layers = 0;
  for (const LayerGroup& group : model.layers) layers += group.layer.splittable ? group.repeat : 0;
  const int stated = std::accumulate(plan.stage_layers.begin(), plan.stage_layers.end(), 0);
  CheckedScenario{scenario}.fail_if(stated != layers, "plan.stage_layers", "{0} layers in all, but the model has {1}",
                                    "{2} numbers that add up to {1}", stated, layers, plan.pipeline);
}

std::vector<std::string> ignored_keys(const Scenario& scenario) {
  static constexpr std::pair<std::string_view, const keys::Mapping*> mappings[] = {{"cluster.network", &keys::network},
                                                                                   {"cluster", &keys::cluster},
                                                                                   {"plan", &keys::plan},
                                                                                   {"plan.sync", &keys::sync},
                                                                                   {"workload.train", &keys::train}};
  const Plan& plan = scenario.plan;
  const keys::Situation situation{scenario.cluster, plan, std::get_if<TrainWorkload>(&scenario.workload),
                                  scenario.background.empty() && scenario.jobs.empty()};
  const auto holds = [&](const keys::Ignored* reason) { return reason != nullptr && reason->in(situation); };
  std::vector<std::string> sentences;
  for (const auto& [path, table] : mappings) {
    const YamlNode* stated = scenario.where.document.at(path);
    if (stated == nullptr) continue;
    for (const keys::Key& key : table->keys) {
      if (key.ignored.front() == nullptr || stated->find(key.name) == nullptr) continue;
      const auto reason = std::ranges::find_if(key.ignored, holds);
      if (reason == key.ignored.end()) continue;
      const std::string why = fmt::format(fmt::runtime((*reason)->why), fmt::arg("zero", plan.zero),
                                          fmt::arg("execution", name(plan.execution)));
      sentences.push_back(fmt::format("{} changes nothing: {}", join_path(path, key.name), why));
    }
  }
  return sentences;
}

}  // namespace foretrain
