#include "validate/host_replay/replay.hpp"

#include <algorithm>
#include <limits>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "validate/host_replay/worker.hpp"

namespace foretrain {

namespace {

/// Messages per repetition of a probe: about 20 ms of traffic, 4 to 200.
int messages_for(Bytes payload, BytesPerSecond rate) {
  return static_cast<int>(std::clamp(rate.value() * 0.02 / (payload.value() + 100.0), 4.0, 200.0));
}

/// Of workers that do not wait for each other: until the first one is done, in which time as many exchanges end as
/// there are workers; without the first half, in which fast ones run ahead as far as they may.
std::vector<double> rounds(const WorkerTask& task, const std::vector<std::vector<TaskSpan>>& spans) {
  std::vector<double> ends, result;
  double first_done = std::numeric_limits<double>::infinity();
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    double last = 0.0;
    for (std::size_t i = 0; i < spans[rank].size(); ++i) {
      if (task.steps[rank][i].exchange >= 0) ends.push_back(last = spans[rank][i].end);
    }
    first_done = std::min(first_done, last);
  }
  std::erase_if(ends, [&](double end) { return end > first_done; });
  std::ranges::sort(ends);
  const std::size_t workers = spans.size();
  for (std::size_t i = ends.size() / 2 + workers; i < ends.size(); i += workers) {
    result.push_back(ends[i] - ends[i - workers]);
  }
  return result;
}

}  // namespace

HostReplayer::HostReplayer() {
  if (const std::string why = why_no_namespaces(); !why.empty()) throw UsageError("cannot replay here: " + why);
  programs_ = find_host_programs();
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
  const Samples samples = run_workers(lab_for(plan.hosts, plan.uplinks), programs_, plan.task, plan.background);
  HostMeasurement measured;
  if (plan.graph) {
    measured.execution = plan.graph->execution(samples.spans);
    measured.waiting = plan.graph->waiting(*measured.execution);
  }
  measured.executor = name(plan.task.executor);
  measured.algorithm = plan.task.algorithm;
  measured.ranks = plan.task.ranks;
  measured.servers = plan.task.servers();
  for (int server = plan.task.ranks; server < static_cast<int>(plan.task.participants.size()); ++server) {
    measured.shared_hosts |= plan.task.participants[at_index(server)].host < plan.task.ranks;
  }
  measured.size = plan.sent;
  measured.rate = plan.hosts.front().out;
  measured.plan = plan_hash(plan);
  measured.samples = plan.task.iterations > 1 ? rounds(plan.task, samples.spans) : samples.seconds;
  measured.busy = samples.busy;
  return measured;
}

ProbeMeasurement HostReplayer::probe(const std::string& protocol, Bytes payload, BytesPerSecond rate) {
  const bool round_trip = protocol == "round trip";
  WorkerTask task;
  task.algorithm = round_trip ? "probe_round_trip" : "probe_" + protocol;
  task.participants = {{0, host_address(0)}, {1, host_address(1)}};
  task.ranks = 2;
  task.elements = static_cast<std::int64_t>(payload.value());
  task.keys = messages_for(payload, rate);
  task.warmup = 3;
  task.repetitions = 11;
  const HostLab& lab = lab_for({{rate, rate}, {rate, rate}}, {});
  const int messages = round_trip ? 2 * task.keys : task.keys;

  // First the bytes of one repetition more than none: what the connection itself costs drops out.
  const auto traffic = [&](int repetitions) {
    WorkerTask counted = task;
    counted.warmup = 0;
    counted.repetitions = repetitions;
    const HostLab::Counters before = lab.counters(0);
    run_workers(lab, programs_, counted);
    const HostLab::Counters after = lab.counters(0);
    return HostLab::Counters{after.sent_bytes - before.sent_bytes, after.sent_packets - before.sent_packets,
                             after.received_bytes - before.received_bytes};
  };
  lab.set_offload(false);
  traffic(1);  // addresses are looked up once
  const HostLab::Counters few = traffic(1), many = traffic(11);
  lab.set_offload(true);
  const double counted = 10.0 * task.keys;

  ProbeMeasurement result;
  result.protocol = protocol;
  result.payload = payload;
  result.rate = rate;
  result.wire_bytes = (many.sent_bytes - few.sent_bytes) / counted;
  result.packets = (many.sent_packets - few.sent_packets) / counted;
  result.returned_bytes = (many.received_bytes - few.received_bytes) / counted;
  for (const double seconds : run_workers(lab, programs_, task).seconds) result.samples.push_back(seconds / messages);
  return result;
}

}  // namespace foretrain
