#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "model/job/job_kinds.hpp"
#include "model/job/training_outlook.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parameter_server/server_graph.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

class ServerJob final : public Job {
 public:
  ServerJob(const Scenario& scenario, Fidelity fidelity)
      : Job(scenario, fidelity),
        model_(build_model(train().model, build_options(train(), scenario.plan))),
        step_(build_step(scenario, train(), model_, topology_)),
        store_(build_store(scenario, train(), model_, topology_, step_)),
        graph_(fidelity == Fidelity::estimate ? build_estimated_graph(store_, topology_)
                                              : build_server_graph(store_, topology_)) {}

  [[nodiscard]] const TaskGraph& graph() const override { return graph_.graph; }
  [[nodiscard]] Result read(const Execution& execution, const Executor& execute) const override;

 private:
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] Breakdown breakdown_of(const ServerGraph::Times& times, Seconds step_time) const;
  [[nodiscard]] std::map<std::string, CommunicationTime> communication_of(const ParameterStore::Bounds& bounds,
                                                                          const Breakdown& breakdown) const;

  Model model_;
  Step step_;
  ParameterStore store_;
  ServerGraph graph_;
};

/// An average worker's time: passes, dispatching and host work; it waits for messages and servers the rest.
Breakdown ServerJob::breakdown_of(const ServerGraph::Times& times, Seconds step_time) const {
  const TimeBreakdown passes = store_.compute();
  const Seconds busy = times.step * times.compute_share;
  Breakdown breakdown;
  breakdown.host_overhead = busy * (passes.host / passes.total());
  breakdown.compute = busy - breakdown.host_overhead;
  breakdown.host_overhead += std::min(store_.host_between_steps, times.step - busy);
  breakdown.compute += step_.loader_device;
  breakdown.data_stall = step_time - times.step - step_.loader_device;
  breakdown.exposed_communication = std::max(beyond_rounding(step_time - breakdown.total(), step_time), Seconds(0.0));
  return breakdown;
}

std::map<std::string, CommunicationTime> ServerJob::communication_of(const ParameterStore::Bounds& bounds,
                                                                     const Breakdown& breakdown) const {
  const Seconds both = bounds.push + bounds.pull;
  if (!(both > Seconds(0.0))) return {};
  const auto time = [&](Seconds total, Bytes sent) -> CommunicationTime {
    return {total, std::min(total, breakdown.exposed_communication * (total / both)),
            std::string(name(scenario_.plan.sync.algorithm)), sent};
  };
  const std::vector<double> by_server = all_parameters(store_);
  const double parameters = std::accumulate(by_server.begin(), by_server.end(), 0.0);
  const Bytes pushed = store_.gradient * parameters / number(store_.workers.front().size());
  return {{"gradient push", time(bounds.push, pushed)}, {"weight pull", time(bounds.pull, Bytes(0.0))}};
}

Result ServerJob::read(const Execution& execution, const Executor&) const {
  const ParameterStore::Bounds bounds = store_bounds(store_, topology_);
  const ServerGraph::Times times = fidelity_ == Fidelity::estimate
                                       ? estimated_times(store_, graph_, topology_, execution, bounds)
                                       : simulated_times(store_, graph_, execution, bounds);
  const Seconds step_time = std::max(times.step + step_.loader_serial, step_.loader_interval);
  const Breakdown breakdown = breakdown_of(times, step_time);
  Result result = named_result();
  fill_training(result, scenario_, topology_, model_, step_, step_time, breakdown, communication_of(bounds, breakdown));

  ParameterServerResult& servers = result.train()->parameter_server.emplace();
  servers.workers = store_.worker_count();
  servers.servers = store_.server_count();
  servers.imbalance = store_.imbalance;
  servers.staleness = times.staleness;
  servers.link_utilisation = std::min(1.0, bounds.link / step_time);
  servers.cpu_utilisation = std::min(1.0, bounds.server / step_time);
  servers.compute_bound = std::min(bounds.compute, step_time);  // a mean over more iterations
  servers.link_bound = bounds.link;
  servers.server_bound = bounds.server;
  const Sync& sync = scenario_.plan.sync;
  if (sync.consistency == Sync::Consistency::bounded && sync.staleness > Sync::most_lead && !store_.equal_workers()) {
    result.warnings.push_back(fmt::format(
        "a bound of {} is not reached within the iterations that are simulated: the speed is that of asynchronous "
        "training, until the fastest worker is that far ahead",
        sync.staleness));
  }
  if (scenario_.cluster.failures) {
    const Bytes state = checkpoint_state(train(), scenario_.plan, step_.parameters_per_gpu);
    Lifetime life = lifetime_of(scenario_, *result.train(), store_, bounds, state);
    std::optional<IntervalSearch> intervals;
    if (train().checkpoint) {
      intervals = search_interval(scenario_, life);
      if (train().checkpoint->best_interval) life.every = intervals->best.every;
    }
    add_goodput(scenario_, life, std::move(intervals), result);
  }
  return result;
}

}  // namespace

std::unique_ptr<Job> make_server_job(const Scenario& scenario, Fidelity fidelity) {
  return std::make_unique<ServerJob>(scenario, fidelity);
}

}  // namespace foretrain
