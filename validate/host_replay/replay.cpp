#include "validate/host_replay/replay.hpp"

#include <algorithm>
#include <limits>

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// Of workers that do not wait for each other: until the first one is done, in which time as many exchanges end as
/// there are workers; without the first half, in which fast ones run ahead as far as they may.
std::vector<double> rounds(const WorkerTask& task, const std::vector<std::vector<TaskSpan>>& spans) {
  std::vector<double> ends, result;
  double first_done = std::numeric_limits<double>::infinity();
  for (int rank = 0; rank < task.ranks; ++rank) {
    double last = 0.0;
    for (std::size_t i = 0; i < spans[at_index(rank)].size(); ++i) {
      if (task.steps[at_index(rank)][i].exchange >= 0) ends.push_back(last = spans[at_index(rank)][i].end);
    }
    first_done = std::min(first_done, last);
  }
  std::erase_if(ends, [&](double end) { return end > first_done; });
  std::ranges::sort(ends);
  const std::size_t workers = at_index(task.ranks);
  for (std::size_t i = ends.size() / 2 + workers; i < ends.size(); i += workers) {
    result.push_back(ends[i] - ends[i - workers]);
  }
  return result;
}

}  // namespace

HostReplayer::HostReplayer() {
  if (const std::string why = why_no_namespaces(); !why.empty()) throw UsageError("cannot replay here: " + why);
}

const HostLab& HostReplayer::lab_for(const std::vector<HostRate>& hosts, const Uplinks& uplinks) {
  if (lab_ && lab_->hosts() == static_cast<int>(hosts.size())) {
    lab_->shape(hosts, uplinks);
  } else {
    lab_.reset();
    lab_ = std::make_unique<HostLab>(hosts, uplinks);
  }
  return *lab_;
}

HostMeasurement HostReplayer::run(const ReplayPlan& plan) {
  const Samples samples = run_workers(lab_for(plan.hosts, plan.uplinks), plan.task, plan.background);
  HostMeasurement measured;
  if (plan.graph) {
    measured.execution = plan.graph->execution(samples.spans);
    measured.waiting = plan.graph->waiting(*measured.execution);
  }
  measured.executor = name(plan.task.executor);
  measured.algorithm = plan.task.algorithm;
  measured.ranks = plan.task.ranks;
  measured.servers = plan.task.servers();
  for (int server = plan.task.ranks; server < plan.task.processes(); ++server) {
    measured.shared_hosts |= plan.task.hosts[at_index(server)] < plan.task.ranks;
  }
  measured.size = plan.sent;
  measured.rate = plan.hosts.front().out;
  measured.plan = plan_hash(plan);
  measured.samples = plan.task.iterations > 1 ? rounds(plan.task, samples.spans) : samples.seconds;
  measured.busy = samples.busy;
  return measured;
}

}  // namespace foretrain
