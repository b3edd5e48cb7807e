#include "validate/fit/gpu_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include "model/base/statistics.hpp"
#include "model/base/units.hpp"

namespace foretrain {

namespace {

constexpr const char* launch_suite = "launch";
constexpr const char* copy_suite = "copy";

using Wanted = std::map<std::string, std::string>;

bool has_all(const RawPoint& point, const Wanted& parameters) {
  return std::ranges::all_of(parameters,
                             [&](const auto& wanted) { return point.parameter(wanted.first) == wanted.second; });
}

std::vector<const RawPoint*> points_with(const RawMeasurements& raw, const char* suite, const Wanted& parameters) {
  std::vector<const RawPoint*> points = raw.of_suite(suite);
  std::erase_if(points,
                [&](const RawPoint* point) { return point->record.unit != "s" || !has_all(*point, parameters); });
  return points;
}

/// Median and half of the distance of the quartiles of the first such point.
struct Middle {
  double value = 0.0, error = 0.0;
};
std::optional<Middle> seconds_of(const RawMeasurements& raw, const char* suite, const Wanted& parameters) {
  const auto points = points_with(raw, suite, parameters);
  if (points.empty()) return std::nullopt;
  const double middle = points.front()->median();
  return Middle{middle, 0.5 * middle * points.front()->spread()};
}

/// The point with the most, or least, `bytes`.
const RawPoint* extreme(const std::vector<const RawPoint*>& points, bool most) {
  const RawPoint* best = nullptr;
  for (const RawPoint* point : points) {
    const double bytes = point->number("bytes");
    if (bytes <= 0.0 || point->median() <= 0.0) continue;
    if (best == nullptr || (most ? bytes > best->number("bytes") : bytes < best->number("bytes"))) best = point;
  }
  return best;
}

class DirectList {
 public:
  explicit DirectList(const RawMeasurements& raw) : raw_(raw) {}

  void add(const char* name, double value, double error, const std::string& meaning) {
    const ConstantRow& row = constant_row(name);
    if (!std::isfinite(value) || value < row.minimum || value > row.maximum) return;  // no constant, but a disturbance
    constants_.push_back({name, 0.0, value, std::isfinite(error) ? std::abs(error) : 0.0, false,
                          fmt::format("{}; {}, driver {}, {}", meaning, raw_.machine.gpus.front().name,
                                      raw_.machine.driver, raw_.machine.date)});
  }
  std::vector<RobustConstant> take() && { return std::move(constants_); }

 private:
  const RawMeasurements& raw_;
  std::vector<RobustConstant> constants_;
};

// A launch and the wait for its end: what is not the empty kernel itself goes to both sides as the published figures
// do.
void add_round_trip(const RawMeasurements& raw, const HostConstants& published, DirectList& list) {
  const auto round_trip = seconds_of(raw, launch_suite, {{"what", "kernel_round_trip"}});
  const auto empty = seconds_of(raw, launch_suite, {{"what", "event_interval"}, {"kernels", "0"}});
  const auto one = seconds_of(raw, launch_suite, {{"what", "event_interval"}, {"kernels", "1"}});
  if (!round_trip) return;
  const double kernel = empty && one ? std::max(0.0, one->value - empty->value) : 0.0;
  const double both = (round_trip->value - kernel) * 1e6;
  const double share = published.launch_latency_us / (published.launch_latency_us + published.synchronize_us);
  const std::string meaning = "launch of an empty kernel and the wait for it, less the kernel, divided as published";
  list.add("host.launch_latency_us", both * share, round_trip->error * 1e6 * share, meaning);
  list.add("host.synchronize_us", both * (1.0 - share), round_trip->error * 1e6 * (1.0 - share), meaning);
}

void add_graphs(const RawMeasurements& raw, DirectList& list) {
  if (const auto call = seconds_of(raw, launch_suite, {{"what", "graph_call"}, {"nodes", "100"}})) {
    list.add("host.graph_launch_us", call->value * 1e6, call->error * 1e6, "launch of a graph of 100 kernels");
  }
  const auto stream = seconds_of(raw, launch_suite, {{"what", "kernel_back_to_back"}, {"blocks", "1"}});
  const auto graph = seconds_of(raw, launch_suite, {{"what", "graph_run"}, {"nodes", "1000"}});
  if (!stream || !graph) return;
  list.add("host.launch_gap_us", std::max(0.0, stream->value - graph->value / 1000.0) * 1e6,
           std::hypot(stream->error, graph->error / 1000.0) * 1e6,
           "empty kernel of a stream less one of a graph of 1,000");
}

/// Bytes per second of the largest size.
void add_rate(const char* name, const RawMeasurements& raw, const char* what, const std::string& meaning,
              DirectList& list) {
  const RawPoint* largest = extreme(points_with(raw, copy_suite, {{"what", what}}), true);
  if (largest == nullptr) return;
  const double rate = largest->number("bytes") / largest->median() * 1e-9;
  list.add(name, rate, 0.5 * rate * largest->spread(), meaning + ", largest size");
}

/// The middle of what steps say of a constant, and half the distance of its quartiles.
void add_middle(const char* name, const std::vector<double>& values, const std::string& meaning, DirectList& list) {
  if (values.empty()) return;
  list.add(name, median(values), 0.5 * (quantile(values, 0.75) - quantile(values, 0.25)), meaning);
}

/// Memory beside tensors: what the device holds beyond the allocator, and what that holds beyond the most that tensors
/// took, as a share of those that come and go in a step.
void add_memory(const RawMeasurements& raw, DirectList& list) {
  constexpr double mib = 1024.0 * 1024.0;
  std::vector<double> contexts, fragmentations;
  for (const RawPoint* point : raw.of_suite(std::string(step_suite))) {
    const double used = point->number("device_used_bytes"), reserved = point->number("reserved_peak_bytes");
    const double peak = point->number("allocated_peak_bytes"), rest = point->number("allocated_rest_bytes");
    if (used > reserved && reserved > 0.0) contexts.push_back((used - reserved) / mib);
    if (reserved >= peak && peak > rest && rest > 0.0) fragmentations.push_back((reserved - peak) / (peak - rest));
  }
  add_middle("memory.context_mib", contexts, "PyTorch's steps: memory in use beyond its allocator's", list);
  add_middle("memory.fragmentation", fragmentations,
             "PyTorch's steps: reserved beyond the peak, over what comes and goes", list);
}

/// Spread of GPUs of one machine: the standard deviation of the same products' times, over the mean.
void add_device_spread(const RawMeasurements& raw, DirectList& list) {
  std::map<std::string, std::vector<double>> times;
  for (const RawPoint* point : raw.of_suite("devices")) times[point->parameter("work")].push_back(point->median());
  std::vector<double> spreads;
  for (const auto& [work, of_devices] : times) {
    if (of_devices.size() < 2) continue;
    const double middle = mean(of_devices);
    double squares = 0.0;
    for (const double time : of_devices) squares += (time - middle) * (time - middle);
    spreads.push_back(std::sqrt(squares / (static_cast<double>(of_devices.size()) - 1.0)) / middle);
  }
  add_middle("step.device_spread", spreads, "the same work for seconds on every GPU, standard deviation over mean",
             list);
}

/// Slowdown of kernels beside NCCL's all_reduce: the median over kernels bound by arithmetic and by memory.
void add_overlap(const RawMeasurements& raw, DirectList& list) {
  std::vector<double> slowdowns;
  for (const RawPoint* point : raw.of_suite("overlap")) {
    if (point->parameter("quantity") == "slowdown" && point->parameter("beside").starts_with("all_reduce")) {
      slowdowns.push_back(std::max(0.0, point->median() - 1.0));
    }
  }
  add_middle("collective.overlap_slowdown", slowdowns,
             "a GEMM and a sum of vectors concurrent with all_reduce, time over that alone, less one", list);
}

/// Bytes per second of the largest copy, the smaller of both directions; seconds of the smallest.
void add_host_link(const RawMeasurements& raw, MeasuredFigures& figures) {
  for (const char* direction : {"to_device", "to_host"}) {
    const auto points = points_with(
        raw, copy_suite, {{"what", "host_copy"}, {"memory", "pinned"}, {"timing", "stream"}, {"direction", direction}});
    const RawPoint* largest = extreme(points, true);
    const RawPoint* smallest = extreme(points, false);
    if (largest == nullptr || largest == smallest) continue;
    const BytesPerSecond bandwidth(largest->number("bytes") / largest->median());
    figures.host_bandwidth = std::min(figures.host_bandwidth.value_or(bandwidth), bandwidth);
    const Seconds latency(smallest->median());
    figures.host_latency = std::max(figures.host_latency.value_or(latency), latency);
  }
}

/// Median over pairs of what the largest copies reach.
void add_peers(const RawMeasurements& raw, MeasuredFigures& figures) {
  const auto points = points_with(raw, "peer", {{"timing", "stream"}, {"direction", "one"}, {"peer_access", "on"}});
  const RawPoint* largest = extreme(points, true);
  if (largest == nullptr) return;
  std::vector<double> rates;
  for (const RawPoint* point : points) {
    const double bytes = point->number("bytes");
    if (bytes == largest->number("bytes") && point->median() > 0.0) rates.push_back(bytes / point->median());
  }
  if (!rates.empty()) figures.peer_bandwidth = BytesPerSecond(median(rates));
  const RawPoint* smallest = extreme(points, false);
  if (smallest != largest) figures.peer_latency = Seconds(smallest->median());
}

void add_l2(const RawMeasurements& raw, double l2_bytes, MeasuredFigures& figures) {
  std::vector<double> rates;
  for (const RawPoint* point : points_with(raw, "memory", {{"what", "l2_read"}})) {
    const double bytes = point->number("bytes"), passes = point->number("passes");
    // Half of the cache: above that its halves, and what else lies there, begin to matter.
    if (bytes > 0.0 && passes > 0.0 && bytes <= 0.51 * l2_bytes && point->median() > 0.0) {
      rates.push_back(bytes * passes / point->median());
    }
  }
  if (!rates.empty()) figures.l2_bandwidth = BytesPerSecond(median(rates));
}

/// Bus bandwidth of the largest all-gather over all GPUs of a machine, and over several machines: rings, which no
/// switch adds up.
void add_rings(const RawMeasurements& raw, MeasuredFigures& figures) {
  double most = 0.0, most_between = 0.0;
  for (const RawPoint* point : raw.of_suite("collective")) {
    const double n = std::atof(point->workload("collective.ranks").c_str());
    const bool between = point->number("nodes") > 1.0;
    if (point->workload("collective.operation") != "all_gather" || point->median() <= 0.0) continue;
    if (!between && n != static_cast<double>(raw.machine.gpus.size())) continue;
    try {
      double& of_all = between ? most_between : most;
      of_all = std::max(
          of_all, parse_quantity<Bytes>(point->workload("collective.size")).value() * (n - 1.0) / n / point->median());
    } catch (const UnitError&) {
      continue;  // the reader of scenarios says what is wrong with it
    }
  }
  if (most > 0.0) figures.ring_bandwidth = BytesPerSecond(most);
  if (most_between > 0.0) figures.network_bandwidth = BytesPerSecond(most_between);
}

/// Correction factor of a model constant: the median over points; nothing without points.
std::optional<double> factor_of(const std::vector<PredictedPoint>& points,
                                const std::function<bool(const PredictedPoint&, const MemoryAccess&)>& wanted) {
  std::vector<double> factors;
  for (const PredictedPoint& point : points) {
    if (!point.op) continue;
    const auto* walk = std::get_if<MemoryAccess>(&point.op->op.work);
    if (walk == nullptr || !wanted(point, *walk)) continue;
    factors.push_back(point.measured / predicted_time(point, point.scenario.calibration));
  }
  if (factors.empty()) return std::nullopt;
  return median(factors);
}

}  // namespace

MeasuredFigures measured_figures(const RawMeasurements& raw, const std::vector<PredictedPoint>& points) {
  MeasuredFigures figures;
  const auto latency = factor_of(points, [](const PredictedPoint& point, const MemoryAccess& walk) {
    return walk.pattern == AccessPattern::dependent &&
           walk.working_set >= point.scenario.cluster.node.gpu.l2_cache * 4.0;
  });
  if (latency) figures.memory_latency = points.front().scenario.cluster.node.gpu.memory_latency * *latency;
  add_l2(raw, raw.machine.gpus.front().l2_cache.value(), figures);
  add_host_link(raw, figures);
  add_peers(raw, figures);
  add_rings(raw, figures);
  return figures;
}

std::vector<RobustConstant> direct_constants(const RawMeasurements& raw, const HostConstants& published) {
  DirectList list(raw);
  add_round_trip(raw, published, list);
  add_graphs(raw, list);
  add_rate("host.page_lock_gbps", raw, "pinned_allocate", "cudaMallocHost", list);
  add_rate("host.pageable_copy_gbps", raw, "fresh_copy", "copy to fresh pageable memory", list);
  add_memory(raw, list);
  add_device_spread(raw, list);
  add_overlap(raw, list);
  return std::move(list).take();
}

}  // namespace foretrain
