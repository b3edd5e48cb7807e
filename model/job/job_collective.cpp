#include <utility>

#include "model/collectives/contention.hpp"
#include "model/job/job_kinds.hpp"
#include "model/scenario/load/checks.hpp"

namespace foretrain {

namespace {

CollectiveCall call_of(const Scenario& scenario) {
  const auto& workload = std::get<CollectiveWorkload>(scenario.workload);
  CollectiveCall call;
  call.operation = workload.operation;
  call.algorithm = scenario.plan.sync.algorithm;
  call.size = workload.size;
  call.levels = scenario.plan.sync.levels;
  call.servers = scenario.plan.sync.servers;
  call.placement = scenario.plan.sync.placement;
  const int group_size = workload.ranks / workload.groups;
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(workload.groups));
  for (int r = 0; r < workload.ranks; ++r) {
    const int group = workload.layout == RankGrouping::strided ? r % workload.groups : r / group_size;
    groups[static_cast<std::size_t>(group)].push_back(r);
  }
  call.groups = groups;
  return call;
}

class CollectiveJob final : public Job {
 public:
  CollectiveJob(const Scenario& scenario, Fidelity fidelity, Recipes recipes)
      : Job(scenario, fidelity), call_(call_of(scenario)), ranks_(static_cast<int>(call_.groups.front().size())) {
    LoweredCollective lowered = lower(call_, topology_, scenario.calibration);
    chosen_algorithm_ = lowered.chosen_algorithm;
    const Seconds uncontended = uncontended_time(lowered, topology_, scenario.background);
    Block block{"collective", Category::communication, uncontended, std::move(lowered)};
    if (recipes == Recipes::kept) {
      block.recipe = recipe_of(
          collective_work(call_.operation, call_.size, ranks_, call_.algorithm, call_.servers, call_.placement));
    }
    graph_ = graph_of_one(std::move(block), {"collective", Resource::Kind::communication_stream});
  }

  [[nodiscard]] const TaskGraph& graph() const override { return graph_; }

  [[nodiscard]] Result read(const Execution& execution, const Executor&) const override {
    Result result = named_result();
    auto& r = result.work.emplace<CollectiveResult>();
    r.time = execution.makespan;
    r.chosen_algorithm = chosen_algorithm_;
    if (r.time > Seconds(0.0)) r.algorithm_bandwidth = call_.size / r.time;
    r.bus_bandwidth = r.algorithm_bandwidth * bus_bandwidth_factor(call_.operation, ranks_);
    for (std::string& sentence : unheeded_keys(scenario_)) result.warnings.push_back(std::move(sentence));
    return result;
  }

 private:
  CollectiveCall call_;
  int ranks_;  ///< of one group
  std::string chosen_algorithm_;
  TaskGraph graph_;
};

}  // namespace

std::unique_ptr<Job> make_collective_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  return std::make_unique<CollectiveJob>(scenario, fidelity, recipes);
}

}  // namespace foretrain
