#include "reports/diagnose/trace_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

#include "model/base/error.hpp"
#include "model/base/statistics.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

using Kernels = std::map<KernelKind, TracedKernels>;
constexpr Seconds IdleTime::*idle_parts[] = {&IdleTime::host, &IdleTime::loader, &IdleTime::dependency,
                                             &IdleTime::unknown};

/// The mean step of all ranks.
struct MeanTrace {
  Kernels kernels;
  IdleTime idle;
  Seconds busy;
  std::optional<Seconds> step;
};

MeanTrace mean_of(std::span<const RankTrace> traces) {
  MeanTrace mean;
  const double share = 1.0 / static_cast<double>(traces.size());
  for (const auto& [file, trace] : traces) {
    for (const auto& [kind, kernels] : trace.kernels) {
      TracedKernels& all = mean.kernels[kind];
      all.time += share * kernels.time;
      all.count += share * kernels.count;
      all.alone += share * kernels.alone;
      mean.busy += share * kernels.alone;
    }
    for (Seconds IdleTime::*const part : idle_parts) mean.idle.*part += share * (trace.idle_by.*part);
    if (trace.step_known) mean.step = mean.step.value_or(Seconds(0.0)) + share * trace.step;
  }
  return mean;
}

/// A single GPU that no loader feeds waits for its host alone.
bool host_alone(const Scenario& scenario) {
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  return train != nullptr && !train->loader && plan_gpus(scenario.plan, scenario.cluster) == 1;
}

/// Idle time becomes what kernels leave of the step.
void set_idle(MeanTrace& trace, Seconds step, const Scenario& scenario) {
  const Seconds rest = std::max(step - trace.busy, Seconds(0.0)), known = trace.idle.total();
  IdleTime& idle = trace.idle;
  if (known > Seconds(0.0)) {
    for (Seconds IdleTime::*const part : idle_parts) idle.*part = rest * (idle.*part / known);
  } else {
    idle.unknown = rest;
  }
  if (host_alone(scenario)) idle.host += std::exchange(idle.unknown, Seconds(0.0));
}

std::vector<TraceRow> rows_of(const PredictedStep& predicted, const MeanTrace& trace, Seconds measured) {
  std::vector<TraceRow> rows;
  TraceRow rest{"remainder", predicted.result.time(), measured};
  const auto add = [&](TraceRow row) {
    rest.expected -= row.expected;
    rest.measured -= row.measured;
    rows.push_back(std::move(row));
  };
  const auto of = [](const Kernels& kernels, KernelKind kind) {
    const auto found = kernels.find(kind);
    return found == kernels.end() ? TracedKernels() : found->second;
  };
  for (std::size_t i = 0; i < names_of<KernelKind>.size(); ++i) {
    const auto kind = static_cast<KernelKind>(i);
    const TracedKernels expected = of(predicted.kernels, kind), found = of(trace.kernels, kind);
    add({label_of(kind), expected.alone, found.alone, expected.count, found.count});
  }
  const Breakdown& parts = predicted.result.train()->breakdown;
  add({"idle: host", parts.host_overhead, trace.idle.host});
  add({"idle: data loader", parts.data_stall, trace.idle.loader});
  add({"idle: dependency", parts.pipeline_bubble, trace.idle.dependency});
  add({"idle: unknown", Seconds(0.0), trace.idle.unknown});
  for (Seconds TraceRow::*const part : {&TraceRow::expected, &TraceRow::measured}) {
    if (std::abs(rest.*part / measured) < 1e-9) rest.*part = Seconds(0.0);  // of rounding
  }
  rows.push_back(rest);
  constexpr double least = 1e-4;  ///< of the step
  std::erase_if(rows, [&](const TraceRow& row) {
    return std::abs(row.expected / measured) < least && std::abs(row.measured / measured) < least;
  });
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const TraceRow& row) { return std::abs(row.difference().value()); });
  return rows;
}

double explained_by(const std::vector<TraceRow>& rows, Seconds difference) {
  Seconds unexplained;
  for (const TraceRow& row : rows) {
    const bool unknown = row.name == "remainder" || row.name == "other kernels" || row.name == "idle: unknown";
    if (unknown) unexplained += row.difference();
  }
  return difference == Seconds(0.0) ? 1.0 : std::max(0.0, 1.0 - std::abs(unexplained / difference));
}

/// Kernels that take longer than the measured step share it.
Breakdown parts_of(const MeanTrace& trace, Seconds step) {
  Breakdown parts;
  const double within = trace.busy > step ? step / trace.busy : 1.0;
  for (const auto& [kind, kernels] : trace.kernels) {
    const bool moves = is_communication(kind) || kind == KernelKind::copy;
    (moves                           ? parts.exposed_communication
     : kind == KernelKind::optimizer ? parts.optimizer
                                     : parts.compute) += within * kernels.alone;
  }
  parts.host_overhead = trace.idle.host;
  parts.data_stall = trace.idle.loader;
  parts.pipeline_bubble = trace.idle.dependency + trace.idle.unknown;
  return parts;
}

void set_parts(TraceDiagnosis& diagnosis, std::span<const RankTrace> traces, const Scenario& scenario) {
  std::vector<double> compute;
  for (const RankTrace& one : traces) {
    MeanTrace trace = mean_of(std::span(&one, 1));
    set_idle(trace, diagnosis.measured, scenario);
    const Breakdown parts = parts_of(trace, diagnosis.measured);
    compute.push_back(parts.compute.value());
    if (diagnosis.ranks.empty() || one.file == diagnosis.ranks.front().file) diagnosis.parts = parts;
  }
  if (traces.size() > 1) diagnosis.lag = diagnosis.parts.compute - Seconds(median(compute));
}

/// The collective by itself as its groups stand in the training: side by side where a group's ranks are apart.
std::optional<CollectiveWorkload> workload_of(const TracedCollective& one, const Scenario& scenario) {
  using enum CollectiveOperation;
  static constexpr std::pair<KernelKind, CollectiveOperation> operations[] = {
      {KernelKind::all_reduce, all_reduce},
      {KernelKind::all_gather, all_gather},
      {KernelKind::reduce_scatter, reduce_scatter},
      {KernelKind::all_to_all, all_to_all},
      {KernelKind::p2p, send_receive}};
  const auto* operation = std::ranges::find(operations, one.kind, &std::pair<KernelKind, CollectiveOperation>::first);
  const auto gpus = static_cast<int>(plan_gpus(scenario.plan, scenario.cluster));
  if (operation == std::end(operations) || one.ranks < 2 || one.ranks > gpus || one.size <= Bytes(0.0)) return {};
  CollectiveWorkload work{.operation = operation->second, .size = one.size, .ranks = one.ranks};
  const std::vector<std::string> ranks =
      split(one.group_ranks.substr(std::min<std::size_t>(1, one.group_ranks.size())), ',');
  const int apart = ranks.size() < 2 ? 1 : std::atoi(ranks[1].c_str()) - std::atoi(ranks[0].c_str());
  if (apart > 1 && gpus % one.ranks == 0) {
    work.ranks = gpus;
    work.groups = gpus / one.ranks;
    work.layout = RankGrouping::strided;
  }
  return work;
}

void set_bandwidths(TraceCollective& row, const TracedCollective& one, const Scenario& scenario) {
  const std::optional<CollectiveWorkload> work = workload_of(one, scenario);
  if (!work || row.time <= Seconds(0.0)) return;
  Scenario alone = scenario;
  alone.workload = *work;
  alone.plan = Plan();
  const Result result = predict(alone, Fidelity::estimate, Detail::numbers);
  row.expected = result.collective()->bus_bandwidth;
  row.reached = *row.expected * (result.time() / row.time);
}

/// A collective that several ranks carried out together: the i-th of its group in each of their traces.
struct Instance {
  std::vector<std::pair<std::size_t, Seconds>> times;  ///< of each trace
  [[nodiscard]] std::pair<std::size_t, Seconds> shortest() const {
    return *std::ranges::min_element(times, {}, &std::pair<std::size_t, Seconds>::second);
  }
};
using InstanceKey = std::tuple<std::string, KernelKind, double, int, std::size_t>;

std::map<InstanceKey, Instance> instances_of(std::span<const RankTrace> traces) {
  std::map<InstanceKey, Instance> instances;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    std::map<InstanceKey, std::size_t> counts;
    for (const TracedCollective& one : traces[i].summary.collectives) {
      InstanceKey key{one.group, one.kind, one.size.value(), one.ranks, 0};
      std::get<4>(key) = counts[key]++;
      instances[key].times.emplace_back(i, one.time);
    }
  }
  return instances;
}

/// The last rank at a collective finds all others waiting: its kernel is the shortest. No clocks are compared.
std::vector<TraceRank> ranks_of(std::span<const RankTrace> traces, const std::map<InstanceKey, Instance>& instances) {
  std::vector<TraceRank> ranks;
  if (traces.size() < 2) return ranks;
  for (const RankTrace& trace : traces) ranks.push_back({trace.file, Seconds(0.0)});
  std::vector<double> counts(traces.size(), 0.0);
  for (const auto& [key, instance] : instances) {
    if (instance.times.size() < 2) continue;
    const auto [last, shortest] = instance.shortest();
    ranks[last].last += 1.0;
    for (const auto& [rank, time] : instance.times) {
      ranks[rank].waits += (time - shortest) / static_cast<double>(traces[rank].summary.steps);
      counts[rank] += 1.0;
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].last /= std::max(counts[i], 1.0);
  std::ranges::stable_sort(ranks, {}, &TraceRank::waits);
  return ranks;
}

/// Sets evidence that distinguishes causes of exposed communication.
void set_communication(TraceDiagnosis& diagnosis, std::span<const RankTrace> traces, const Scenario& scenario,
                       const std::map<InstanceKey, Instance>& instances) {
  const Plan& plan = scenario.plan;
  const bool alone = plan.tensor == 1 && plan.context == 1 && plan.expert == 1;
  for (const TracedCollective& one : traces.front().summary.collectives) {
    const bool reduces = one.kind == KernelKind::all_reduce || one.kind == KernelKind::reduce_scatter;
    if (!alone || !reduces || one.size <= Bytes(0.0)) continue;
    diagnosis.bucket = std::max(one.size, diagnosis.bucket.value_or(one.size));
  }
  if (traces.size() < 2) return;
  double steps = 0.0;
  for (const RankTrace& trace : traces) steps += trace.summary.steps;
  diagnosis.communication = Seconds(0.0);
  for (const auto& [key, instance] : instances) {
    const double times = static_cast<double>(instance.times.size());
    *diagnosis.communication += instance.shortest().second * times / steps;
  }
}

std::vector<TraceCollective> collectives_of(std::span<const RankTrace> traces, const Scenario& scenario,
                                            const std::map<InstanceKey, Instance>& instances) {
  struct Seen {
    std::vector<double> times;
    double count = 0.0;
    TracedCollective example = {};
  };
  std::map<std::tuple<KernelKind, double, int>, Seen> seen;
  for (const auto& [key, instance] : instances) {
    seen[{std::get<1>(key), std::get<2>(key), std::get<3>(key)}].times.push_back(instance.shortest().second.value());
  }
  double steps = 0.0;
  for (const RankTrace& trace : traces) {
    steps += trace.summary.steps;
    for (const TracedCollective& one : trace.summary.collectives) {
      Seen& alike = seen[{one.kind, one.size.value(), one.ranks}];
      alike.count += 1.0;
      alike.example = one;
    }
  }
  std::vector<TraceCollective> rows;
  for (const auto& [key, alike] : seen) {
    const TracedCollective& one = alike.example;
    rows.push_back({one.kind, one.size, one.ranks, alike.count / steps, Seconds(median(alike.times))});
  }
  const auto all = [](const TraceCollective& row) { return row.count * row.time; };
  std::ranges::stable_sort(rows, std::ranges::greater{}, all);
  constexpr std::size_t shown = 8;
  if (rows.size() > shown) rows.resize(shown);
  for (TraceCollective& row : rows) {
    set_bandwidths(row, seen[{row.kind, row.size.value(), row.ranks}].example, scenario);
  }
  return rows;
}

}  // namespace

std::string label_of(KernelKind kind) {
  if (kind == KernelKind::matmul) return "GEMM";
  if (kind == KernelKind::p2p) return "P2P";
  if (kind == KernelKind::communication) return "other collectives";
  std::string label(name(kind));
  std::ranges::replace(label, '_', '-');
  return kind == KernelKind::other ? "other kernels" : label;
}

TraceDiagnosis diagnose_traces(const Scenario& scenario, std::span<const RankTrace> traces,
                               std::optional<Seconds> measured, Fidelity fidelity) {
  MeanTrace trace = mean_of(traces);
  const std::optional<Seconds> traced = trace.step;
  if (!measured) measured = traced;
  if (!measured) {
    throw UsageError(traces.front().file + ": does not say how long a step takes; add --measured TIME");
  }
  if (!(*measured > Seconds(0.0))) {
    throw UsageError(traces.front().file + ": its step takes 0 s; add --measured TIME");
  }
  set_idle(trace, *measured, scenario);
  const PredictedStep predicted = predicted_kernels(scenario, fidelity);
  TraceDiagnosis diagnosis{.expected = predicted.result.time(), .measured = *measured};
  diagnosis.steps = traces.front().summary.steps;
  diagnosis.traced = traced;
  diagnosis.rows = rows_of(predicted, trace, *measured);
  diagnosis.explained = explained_by(diagnosis.rows, diagnosis.measured - diagnosis.expected);
  const std::map<InstanceKey, Instance> instances = instances_of(traces);
  diagnosis.collectives = collectives_of(traces, scenario, instances);
  diagnosis.ranks = ranks_of(traces, instances);
  set_parts(diagnosis, traces, scenario);
  set_communication(diagnosis, traces, scenario, instances);
  return diagnosis;
}

}  // namespace foretrain
