#include "model/scenario/unheeded_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

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

std::vector<Row> rows_of(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const Sync& sync = plan.sync;
  if (std::holds_alternative<CollectiveWorkload>(scenario.workload)) {
    return {
        {true,
         "a collective by itself has algorithm, levels, servers and placement alone",
         {"sync.bucket", "sync.first_bucket", "sync.bucketing", "sync.overlap", "sync.every_micro_batch", "sync.copied",
          "sync.summed_apart", "sync.gradient_precision", "sync.gather", "sync.gather_overlap", "sync.consistency",
          "sync.assignment", "sync.split", "sync.priority", "sync.barrier", "sync.local_reduce", "sync.slow_workers"}}};
  }
  if (!std::holds_alternative<TrainWorkload>(scenario.workload)) return {};
  if (replicas_of(plan) == 1 && !servers_update(plan)) {
    return {{true,
             "one replica synchronises nothing",
             {"sync.algorithm", "sync.bucket", "sync.first_bucket", "sync.bucketing", "sync.overlap",
              "sync.every_micro_batch", "sync.compression", "sync.gather", "sync.gather_overlap"}}};
  }
  const bool updates = plan.zero == 1 || plan.zero == 2;
  return {{servers_update(plan),
           "a parameter server is sent gradients key by key (plan.sync.split)",
           {"sync.bucket", "sync.first_bucket", "sync.bucketing", "sync.copied"}},
          {plan.zero == 3,
           "ZeRO-3 sends the gradients of each layer by themselves",
           {"sync.bucket", "sync.first_bucket", "sync.bucketing"}},
          {plan.zero == 3 && !sync.overlap,
           "ZeRO-3 sends a layer's gradients beside the next one's kernels",
           {"sync.overlap"}},
          {plan.zero == 3 && !sync.every_micro_batch,
           "ZeRO-3 scatters the gradients of every micro-batch",
           {"sync.every_micro_batch"}},
          {plan.zero == 3 && plan.sync.algorithm != SyncAlgorithm::automatic && copies_of_shard(plan) == 1,
           "ZeRO-3 gathers and scatters, and all-reduces nothing",
           {"sync.algorithm", "sync.levels"}},
          {!updates,
           fmt::format("ZeRO-{} has no updated weights that come back", plan.zero),
           {"sync.gather", "sync.gather_overlap"}},
          {scenario.cluster.groups.empty(), "all nodes are alike", {"split"}}};
}

}  // namespace

std::vector<std::string> unheeded_keys(const Scenario& scenario) {
  std::vector<std::string> sentences;
  for (const Row& row : rows_of(scenario)) {
    for (const char* word : row.keys) {
      const std::string key = fmt::format("plan.{}", word);
      if (row.unheeded && states(scenario, key)) {
        sentences.push_back(fmt::format("{} changes nothing: {}", key, row.why));
      }
    }
  }
  return sentences;
}

}  // namespace foretrain
