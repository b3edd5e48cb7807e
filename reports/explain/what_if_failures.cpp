#include "reports/explain/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/scenario/load/checks.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/result/text.hpp"

namespace foretrain {

namespace {

class Losses {
 public:
  Losses(const Scenario& scenario, const Reload& reload)
      : scenario_(scenario),
        cluster_(scenario.cluster),
        train_(std::get<TrainWorkload>(scenario.workload)),
        reload_(reload) {}

  std::vector<WhatIf> all() {
    goes_on("one GPU at half speed", {{.node = 0, .gpu = 0, .link = "", .share = 0.5}});
    if (cluster_.nodes > 1) {
      if (cluster_.network.nics_per_node > 1) goes_on("one NIC", {{.node = 0, .card = 0, .link = "", .failed = true}});
      if (const auto* tree = std::get_if<FatTree>(&cluster_.network.fabric.shape)) add_switches(*tree);
      restarts("one node", 1);
    }
    return std::move(losses_);
  }

 private:
  /// With these faults behind those that the scenario has.
  void goes_on(std::string name, const std::vector<Fault>& faults) {
    WhatIf& loss = losses_.emplace_back(WhatIf{.name = std::move(name), .scenario = scenario_});
    std::vector<Fault>& all = loss.scenario->cluster.faults;
    all.insert(all.end(), faults.begin(), faults.end());
    try {
      check_scenario(*loss.scenario);
    } catch (const ScenarioError& error) {
      loss = {.name = loss.name, .why_not = error.what()};
    }
  }

  /// As many replicas as whole ones fit on the machines that are left.
  void restarts(std::string name, int machines) {
    const Plan& plan = scenario_.plan;
    const int gpus_of_replica = plan.tensor * plan.context * plan.pipeline;
    const int left = (cluster_.nodes - machines) * cluster_.gpus_per_node;
    const int replicas = left / gpus_of_replica / plan.expert * plan.expert;
    if (replicas < 1) {
      losses_.push_back(
          {.name = std::move(name),
           .why_not = fmt::format("the remaining nodes hold no replica of {}", counted(gpus_of_replica, "GPU"))});
    } else {
      const int used = replicas * gpus_of_replica, each = cluster_.gpus_per_node;
      const std::int64_t batch = train_.global_batch / plan.data * replicas;
      losses_.push_back(
          reloaded(std::move(name),
                   {fmt::format("cluster.nodes={}", (used + each - 1) / each), fmt::format("plan.data={}", replicas),
                    fmt::format("workload.train.global_batch={}", batch)},
                   reload_));
    }
    losses_.back().lost_machines = machines;
  }

  void add_switches(const FatTree& tree) {
    const int leaves = (cluster_.nodes + tree.nodes_per_leaf - 1) / tree.nodes_per_leaf;
    const int below = std::min(tree.nodes_per_leaf, cluster_.nodes);
    if (leaves > 1) add_spine(tree, leaves);
    if (!tree.rails) return restarts("one leaf switch with " + counted(below, "node"), below);
    std::vector<Fault> faults;
    for (int node = 0; node < below; ++node) faults.push_back({.node = node, .card = 0, .link = "", .failed = true});
    goes_on("one leaf switch with one NIC of " + counted(below, "node"), faults);
  }

  /// Each leaf has one uplink to each spine; where they carry all together, the others carry what it did.
  void add_spine(const FatTree& tree, int leaves) {
    const int spines = tree.uplinks_of(cluster_);
    if (spines < 2 || tree.nodes_per_pod > 0) return;
    const bool by_name = tree.routing == UplinkRouting::hash;
    std::vector<Fault> faults;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      for (int rail = 0; rail < (tree.rails ? cluster_.network.nics_per_node : 1); ++rail) {
        const std::string name = tree.rails ? fmt::format("leaf{}.{}", leaf, rail) : fmt::format("leaf{}", leaf);
        faults.push_back(by_name ? Fault{.link = name + "-spine0", .failed = true}
                                 : Fault{.link = name + "-spine", .share = (spines - 1.0) / spines});
      }
    }
    goes_on(fmt::format("one of {} spine switches", spines), faults);
  }

  const Scenario& scenario_;
  const Cluster& cluster_;
  const TrainWorkload& train_;
  const Reload& reload_;
  std::vector<WhatIf> losses_ = {};
};

double rate_of(const Result& result) { return result.train()->samples_per_second; }

std::string restart_text(const Result& whole) {
  const TrainResult& train = *whole.train();
  std::string text = "Training restarts on the remaining nodes with the same samples per replica";
  if (!train.goodput) {
    return text +
           "; with a spare node, at full speed. cluster.failures and train.checkpoint give the length of a restart.";
  }
  text += fmt::format(" after {} of detection and restart", format_seconds(train.goodput->recovery));
  if (train.goodput->every > 0) {
    const Seconds again = train.step_time * (0.5 * train.goodput->every) + train.goodput->unsafe;
    text += fmt::format(" and, on average, {} of lost steps", format_seconds(again));
  }
  return text + "; with a spare node, at full speed.";
}

}  // namespace

std::vector<WhatIf> part_losses(const Scenario& scenario, const Reload& reload) {
  if (!std::holds_alternative<TrainWorkload>(scenario.workload) || !scenario.cluster.groups.empty()) return {};
  return Losses(scenario, reload).all();
}

std::string to_text(const Result& whole, const std::vector<WhatIf>& losses) {
  if (losses.empty()) return "";
  TextTable table("llrrr", {"failed part", "training", "step time", "samples/s", "change"});
  const TrainResult& before = *whole.train();
  table.add_row({"none", "", format_seconds(before.step_time), format_count(before.samples_per_second)});
  std::string impossible;
  bool any_restarts = false;
  for (const WhatIf& loss : losses) {
    if (!loss.result) {
      impossible += fmt::format("    {}: {}\n", loss.name, wrap(loss.why_not, page_width() - 6, 6));
      continue;
    }
    any_restarts = any_restarts || loss.lost_machines > 0;
    table.add_row({loss.name, loss.lost_machines > 0 ? "restarts" : "continues",
                   format_seconds(loss.result->train()->step_time) +
                       (loss.result->train()->memory.fits() ? "" : ", does not fit"),
                   format_count(rate_of(*loss.result)), signed_percent(rate_of(*loss.result) / rate_of(whole) - 1.0)});
  }
  std::string text = title_of(whole, "", ": cost of a failed part until its repair") + "\n" + table.text(2);
  if (any_restarts) text += paragraph(restart_text(whole));
  if (!impossible.empty()) text += "  Training stops without:\n" + impossible;
  return text;
}

std::string to_json(const Result& whole, const std::vector<WhatIf>& losses) {
  using Json = nlohmann::ordered_json;
  Json json = {{"scenario", whole.scenario},
               {"fidelity", name(whole.fidelity)},
               {"step_time_s", whole.time().value()},
               {"samples_per_second", rate_of(whole)},
               {"parts", Json::array()}};
  if (const auto& goodput = whole.train()->goodput) json["recovery_s"] = goodput->recovery.value();
  for (const WhatIf& loss : losses) {
    Json one = {{"part", loss.name}, {"machines", loss.lost_machines}, {"set", loss.overrides}};
    if (loss.result) {
      one["step_time_s"] = loss.result->time().value();
      one["samples_per_second"] = rate_of(*loss.result);
      one["fits"] = loss.result->train()->memory.fits();
    } else {
      one["why_not"] = loss.why_not;
    }
    json["parts"].push_back(std::move(one));
  }
  return json.dump(2);
}

}  // namespace foretrain
