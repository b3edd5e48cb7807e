// Synchronisation of gradients in the plans of a space, and each plan's keys.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/number.hpp"
#include "model/base/words.hpp"
#include "model/planning/plan_space.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/overrides.hpp"
#include "model/scenario/plan/plan_reader.hpp"

namespace foretrain {

/// The synchronisation without the keys that only servers know, where it has any, as an override.
std::string PlanSpace::sync_without_servers(const YamlNode& document) {
  const YamlNode* sync = document.at("plan.sync");
  if (sync == nullptr) return "";
  std::string kept;
  bool any = false;
  for (const YamlEntry& entry : sync->entries) {
    const bool left_out = keys::is_server_key(entry.key);
    any = any || left_out;
    if (left_out || !entry.value.is_scalar() || entry.key == "algorithm") continue;
    kept += fmt::format("{}{}: {}", kept.empty() ? "" : ", ", entry.key, entry.value.scalar);
  }
  return any ? "plan.sync={" + kept + "}" : "";
}

/// Reads the framework's, or the default, settings of the ZeRO stages that divide gradients.
void PlanSpace::ask_trainer(const Cluster& cluster) {
  if (!chosen_.has(PlanDimension::zero)) return;
  for (const int level : {2, 3}) {
    YamlNode asked = document_;
    use_our_names(asked);
    for (const std::string& text : {fmt::format("plan.zero={}", level), std::string("plan.pipeline=2")}) {
      apply_override(asked, parse_override(text));
    }
    try {
      ReadWorkload workload = read_workload(Field(*asked.at("workload"), "workload"), cluster);
      Plan plan = read_stated_plan(Field(*asked.at("plan"), "plan"));
      apply_framework(asked, cluster, std::get<TrainWorkload>(workload.workload), plan);
      scatters_ = scatters_ || (level == 2 && plan.zero_gradients == ZeroGradients::scattered);
    } catch (const ScenarioError&) {
      in_pipelines_[at_index(level)] = false;
    }
  }
}

/// Backward passes in two parts have no gradients of weights to scatter, and no weights that come and go.
bool PlanSpace::runs(int zero, const PlanPoint& point) const {
  if (point.pipeline > 1 && !in_pipelines_[at_index(zero)]) return false;
  return !splits_backward(point.schedule) || zero < 2 || (zero == 2 && !scatters_);
}

/// By whom gradients are added up. An algorithm is that of all-reduces, which ZeRO does without. Servers update whole
/// weights in memory of their own, with which neither ZeRO nor offloading goes. A search that chooses the algorithm
/// tries them where ranks hold the whole model, and bucket by bucket there are as many of them as can be.
std::vector<PlanPoint> PlanSpace::methods(const PlanPoint& point) const {
  if (point.dedicated()) return {point};
  const bool alone = point.data * point.context == 1 && point.schedule != PipelineSchedule::dualpipe;
  std::vector<PlanPoint> all;
  const auto add = [&](SyncAlgorithm algorithm, int servers, ServerPlacement placement) {
    PlanPoint& one = all.emplace_back(point);
    one.algorithm = algorithm;
    one.servers = servers;
    one.placement = placement;
  };
  if (!algorithm_) {
    for (const SyncAlgorithm one : plan_algorithms) add(one, 0, ServerPlacement::cpu);
    if (alone || point.zero > 0 || !chosen_.allows(PlanExtra::algorithms)) all.resize(1);
  } else if (!has_servers(*algorithm_)) {
    add(*algorithm_, 0, ServerPlacement::cpu);
  }
  const bool offloads = point.offload > 0 || example_.plan.offload.any();
  if (!all.empty() && (alone || point.zero > 0 || offloads || !point.undivided())) return all;
  PlanPoint served = point;
  served.servers = 1;
  for (std::size_t i = 0; i < with_servers_.size(); ++i) {
    const PlanPoint& one = with_servers_[i];
    const bool most = i + 1 == with_servers_.size() || with_servers_[i + 1].placement != one.placement;
    if (!one.dedicated() && (most || served.pushes_keys())) add(one.algorithm, one.servers, one.placement);
  }
  return all;
}

/// One of each method where there is nothing to synchronise in buckets, or where the choice changes nothing.
std::vector<PlanPoint> PlanSpace::synchronisations(const PlanPoint& point) const {
  using enum PlanDimension;
  const bool alone = point.data * point.context == 1 && point.schedule != PipelineSchedule::dualpipe;
  std::vector<PlanPoint> all;
  for (PlanPoint one : methods(point)) {
    const bool keys = one.pushes_keys(), buckets = !alone && point.zero < 3;
    for (one.bucket = chosen_.has(bucket) ? 0 : -1; one.bucket < static_cast<int>(plan_buckets.size()); ++one.bucket) {
      if (one.bucket > 0 && (!buckets || keys)) break;
      for (const bool beside : {true, false}) {
        if (!beside && (!chosen_.has(overlap) || !(buckets || keys))) break;
        one.overlap = chosen_.has(overlap) ? beside : example_.plan.sync.overlap;
        all.push_back(one);
      }
      if (!chosen_.has(bucket)) break;
    }
  }
  return all;
}

std::vector<std::string> PlanSpace::overrides(const PlanPoint& point) const {
  std::vector<std::string> overrides = overrides_of(point, chosen_);
  if (point.servers == 0 && !without_servers_.empty()) overrides.insert(overrides.begin(), without_servers_);
  if (tensor_overlap_ && !point.sequence_parallel) overrides.emplace_back("plan.tensor_overlap=false");
  return overrides;
}

Scenario PlanSpace::read(const PlanPoint& point) const {
  YamlNode document = document_;
  for (const std::string& text : overrides(point)) apply_override(document, parse_override(text));
  return read_scenario(std::move(document), name_);
}

}  // namespace foretrain
