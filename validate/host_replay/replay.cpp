#include "validate/host_replay/replay.hpp"

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {

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
  measured.executor = own_executor;
  measured.algorithm = plan.task.algorithm;
  measured.ranks = plan.task.ranks;
  measured.servers = plan.task.servers();
  for (int server = plan.task.ranks; server < plan.task.processes(); ++server) {
    measured.shared_hosts |= plan.task.hosts[at_index(server)] < plan.task.ranks;
  }
  measured.size = plan.sent;
  measured.rate = plan.hosts.front().out;
  measured.plan = plan_hash(plan);
  measured.samples = samples.seconds;
  measured.busy = samples.busy;
  return measured;
}

}  // namespace foretrain
