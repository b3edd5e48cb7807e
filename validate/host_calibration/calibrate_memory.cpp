// The part "memory": latency and bandwidth of every level of the memory hierarchy. Which working sets show a level
// follows from the machine's description.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "model/base/number.hpp"
#include "model/cost/memory_hierarchy.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/memory_walk.hpp"
#include "validate/host_calibration/processors.hpp"

namespace foretrain {

namespace {

using Parameters = std::map<std::string, std::string>;

std::string kibibytes(Bytes size) {
  return fmt::format("{:.0f} KiB", std::max(1.0, std::floor(size.value() / 1024.0)));
}

/// A working set well inside each level and well outside of the one before, a power of two.
struct Level {
  std::string name;
  std::string working_set;
};

Bytes power_of_two_below(Bytes size) { return Bytes(std::exp2(std::floor(std::log2(size.value())))); }

/// Eight times the last cache. Where other virtual machines fill it as well, so much that it keeps nothing from one
/// pass to the next, at the fastest that it can be walked over.
Bytes outside_of(const Cpu& cpu, WalkPattern pattern) {
  constexpr Bytes least(134217728.0), most(1073741824.0);
  constexpr double residences = 1.5;
  const CacheLevel& last = cpu.hierarchy->caches.back();
  if (!(last.residence.value() > 0.0)) return std::max(least, power_of_two_below(last.size * 8.0));
  const BytesPerSecond rate =
      pattern == WalkPattern::pointer_chase ? cpu.hierarchy->line / last.latency : last.read * number(cpu.cores);
  return std::clamp(power_of_two_below(rate * last.residence * residences * 2.0), least, most);
}

std::vector<Level> levels_of(const Cpu& cpu, WalkPattern pattern = WalkPattern::sequential) {
  std::vector<Level> levels;
  if (!cpu.hierarchy) return levels;
  Bytes inner(0.0);
  for (const CacheLevel& cache : cpu.hierarchy->caches) {
    // Half of the level: what remains is for other data and for pages that fall on the same sets.
    Bytes inside = power_of_two_below(cache.size / 2.0);
    // A cache beyond the second is shared, by virtual machines with each other: twice the second is enough to show it.
    const double beyond = levels.size() >= 2 ? 2.0 : 4.0;
    if (inner.value() > 0.0) inside = std::min(inside, power_of_two_below(inner * beyond));
    if (inside >= inner * 1.9) levels.push_back({cache.name, kibibytes(inside)});
    inner = cache.size;
  }
  const Bytes outside = outside_of(cpu, pattern);
  if (outside * 4.0 <= cpu.memory) levels.push_back({"memory", kibibytes(outside)});
  return levels;
}

/// Measures each of the walks in an equal part of the time, in rounds over all of them. What other virtual machines
/// take changes within seconds, and a single thread looks at another processor in each round. Rates are bytes asked for
/// per second, of all threads.
void measure_walks(const CalibrationSettings& settings, const RowSink& sink, std::string_view name,
                   const std::vector<Parameters>& walks, std::string_view unit, int rounds = 1) {
  const Seconds budget = settings.budget / number(walks.size()) / rounds;
  const StoppingRule rule{
      .warm_up = 1, .least = rounds > 1 ? 5 : 9, .most = 400, .target = 0.005, .budget = budget * 0.8};
  std::vector<Sampled> sampled(walks.size());
  const std::vector<int> processors = own_processors();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < walks.size(); ++i) {
      const MemoryWalk walk = walk_of(walks[i], settings.node.cpu);
      std::optional<BoundTo> bound;
      if (walk.threads == 1) bound.emplace(processors[at_index(round) % processors.size()]);
      Sampled samples = run_walk(walk, rule);
      if (unit == "B/s") {
        const WalkCost cost = memory_walk_cost(walk, settings.node.cpu);  // for what it counts, not for its time
        const double bytes = cost.bytes / Bytes(1.0) / cost.accesses * walk.threads;
        for (double& value : samples.values) value = bytes / value;
      }
      sampled[i].values.insert(sampled[i].values.end(), samples.values.begin(), samples.values.end());
      if (round + 1 == rounds) sink(row_of(name, walks[i], sampled[i], unit));
    }
  }
}

int rounds_of(const CalibrationSettings& settings) { return settings.quick ? 1 : 3; }

std::vector<std::string> working_sets_of(const std::vector<Level>& levels, const std::set<std::string>& wanted = {}) {
  std::vector<std::string> working_sets;
  for (const Level& level : levels) {
    if (wanted.empty() || wanted.contains(level.name)) working_sets.push_back(level.working_set);
  }
  return working_sets;
}

/// Walks over each working set, with each value of a parameter.
std::vector<Parameters> walks_over(const std::vector<std::string>& working_sets, const Parameters& common,
                                   const char* key, std::initializer_list<const char*> values) {
  std::vector<Parameters> walks;
  for (const std::string& working_set : working_sets) {
    for (const char* value : values) {
      walks.push_back(common);
      walks.back().insert({{"working_set", working_set}, {key, value}});
    }
  }
  return walks;
}

void measure_latency(const CalibrationSettings& settings, const RowSink& sink) {
  const auto working_sets = working_sets_of(levels_of(settings.node.cpu, WalkPattern::pointer_chase));
  const auto walks = walks_over(working_sets, {{"pattern", "pointer_chase"}}, "pages", {"huge", "small"});
  measure_walks(settings, sink, "memory_latency", walks, "s", rounds_of(settings));
}

void measure_curve(const CalibrationSettings& settings, const RowSink& sink) {
  std::vector<Parameters> walks;
  const double largest = std::min(settings.quick ? 2.7e8 : 1.1e9, settings.node.cpu.memory.value() / 8.0);
  for (double size = 16384.0; size <= largest; size *= settings.quick ? 2.0 : std::sqrt(2.0)) {
    walks.push_back({{"working_set", kibibytes(Bytes(size))}, {"pattern", "pointer_chase"}, {"pages", "small"}});
  }
  measure_walks(settings, sink, "memory_latency_curve", walks, "s");
}

void measure_bandwidth(const CalibrationSettings& settings, const RowSink& sink) {
  const std::vector<Level> levels = levels_of(settings.node.cpu);
  auto walks = walks_over(working_sets_of(levels), {{"pages", "huge"}}, "access", {"read", "write", "copy"});
  for (int threads = 2; threads <= settings.node.cpu.cores; threads *= 2) {
    const auto more =
        walks_over(working_sets_of(levels, {"memory"}), {{"pages", "huge"}, {"threads", fmt::format("{}", threads)}},
                   "access", {"read", "write", "copy"});
    walks.insert(walks.end(), more.begin(), more.end());
  }
  measure_walks(settings, sink, "memory_bandwidth", walks, "B/s", rounds_of(settings));
}

/// Seconds per access or bytes per second. Nothing when the processor's memory hierarchy is not described.
std::optional<double> predict_walk(const BenchmarkRow& row, const Node& node) {
  if (!node.cpu.hierarchy) return std::nullopt;
  const WalkCost cost = memory_walk_cost(walk_of(row.parameters, node.cpu), node.cpu);
  return row.unit == "B/s" ? (cost.bytes / cost.time).value() : cost.per_access.value();
}

}  // namespace

std::vector<HostBenchmark> memory_benchmarks() {
  const auto row = [](std::string_view name, std::string_view description, double seconds, double quick_seconds,
                      double tolerance, void (*measure)(const CalibrationSettings&, const RowSink&)) {
    return HostBenchmark{"memory",  name,    description, Seconds(seconds), Seconds(quick_seconds),
                         tolerance, measure, predict_walk};
  };
  return {row("memory_latency", "a load that waits for the one before it, by level", 20.0, 3.0, 0.25, measure_latency),
          row("memory_bandwidth", "whole lines in order, one core and all", 20.0, 3.0, 0.20, measure_bandwidth),
          row("memory_latency_curve", "a load that waits for the one before it, by working set", 18.0, 3.0, 0.0,
              measure_curve)};
}

}  // namespace foretrain
