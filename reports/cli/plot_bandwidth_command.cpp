#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/collectives/collective.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/checks.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot_bandwidth.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

constexpr int points_per_decade = 6;

/// "1 KB..10 GB": evenly spread on a logarithmic axis, in whole bytes.
std::vector<double> parse_sizes(const std::string& text) {
  const std::size_t dots = text.find("..");
  try {
    if (dots == std::string::npos) throw UnitError("no range", "");
    const double low = parse_quantity<Bytes>(text.substr(0, dots)).value();
    const double high = parse_quantity<Bytes>(text.substr(dots + 2)).value();
    if (low < 1.0 || high < low) throw UnitError("the range must begin at 1 B or more and not end before", "");
    const int steps = static_cast<int>(std::ceil(std::log10(high / low) * points_per_decade - 1e-9));
    std::vector<double> sizes;
    for (int i = 0; i <= steps; ++i) {
      sizes.push_back(std::round(i == steps ? high : low * std::pow(10.0, static_cast<double>(i) / points_per_decade)));
    }
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
  } catch (const UnitError& error) {
    throw UsageError(fmt::format("--sizes {}: {}; write for example 1 KB..10 GB", text, error.got()));
  }
}

const CollectiveWorkload& collective_of(const Scenario& scenario) {
  const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload);
  if (collective == nullptr) {
    throw ScenarioError(position_of(scenario, "workload"), "workload", "no collective, whose bandwidth could be drawn",
                        "workload: { collective: … }");
  }
  return *collective;
}

/// Whether a measured case is of the same collective on the same machines.
bool same_setting(const Scenario& a, const Scenario& b) {
  const CollectiveWorkload& x = collective_of(a);
  const CollectiveWorkload& y = collective_of(b);
  return a.cluster.node.name == b.cluster.node.name && a.cluster.nodes == b.cluster.nodes &&
         x.operation == y.operation && x.ranks == y.ranks;
}

/// A measured message of a case.
struct MeasuredCase {
  Scenario scenario;
  double time = 0.0, bus_bandwidth = 0.0;
};

std::vector<MeasuredCase> read_measured(const std::vector<std::string>& tables) {
  std::vector<MeasuredCase> cases;
  for (const std::string& table : tables) {
    for (const Case& row : read_cases(table)) {
      Scenario scenario = scenario_of(row);
      if (!std::holds_alternative<CollectiveWorkload>(scenario.workload)) continue;
      const CollectiveWorkload& collective = collective_of(scenario);
      const double moved = collective.size.value() * bus_bandwidth_factor(collective.operation, collective.ranks);
      const auto found = std::ranges::find_if(row.measured, [](const Measurement& one) {
        return one.quantity == MeasuredQuantity::time || one.quantity == MeasuredQuantity::bus_bandwidth;
      });
      if (found == row.measured.end()) continue;
      const double other = moved / found->value;
      const bool is_time = found->quantity == MeasuredQuantity::time;
      cases.push_back({std::move(scenario), is_time ? found->value : other, is_time ? other : found->value});
    }
  }
  return cases;
}

/// One panel per file and combination of varied values.
std::vector<Case> panel_cases(const PlotOptions& shared) {
  std::vector<Case> cases;
  for (const std::string& file : shared.files) {
    const std::vector<Case> rows = combinations(file, shared.overrides, parse_variations(shared.variations));
    cases.insert(cases.end(), rows.begin(), rows.end());
  }
  return cases;
}

Case with(Case row, const std::string& key, const std::string& value) {
  row.overrides.push_back({key, value, {fmt::format("{}={}", key, value), 0, 0}});
  return row;
}

/// The algorithms of a panel's curves.
std::vector<std::string> algorithms_of(const PlotOptions& options, const Scenario& scenario) {
  if (!options.algorithms.empty()) return options.algorithms;
  return {std::string(name(scenario.plan.sync.algorithm))};
}

BandwidthChart chart_of(const Scenario& scenario, const std::vector<double>& sizes,
                        const std::vector<MeasuredCase>& measured) {
  const CollectiveWorkload& collective = collective_of(scenario);
  const std::string nodes = scenario.cluster.nodes > 1 ? fmt::format(" on {} nodes", scenario.cluster.nodes) : "";
  BandwidthChart chart = empty_bandwidths(
      scenario.cluster.node.name,
      fmt::format("{}, {} GPUs{}", spoken(std::string(name(collective.operation))), collective.ranks, nodes), sizes);
  for (const MeasuredCase& one : measured) {
    if (!same_setting(scenario, one.scenario)) continue;
    const double size = collective_of(one.scenario).size.value();
    chart.measured_times.push_back({size, one.time});
    chart.measured_bandwidths.push_back({size, one.bus_bandwidth});
  }
  return chart;
}

/// A curve's next message; why there is none, or nothing.
std::string add_message(Curve& times, Curve& rates, const Outcome& outcome, bool band) {
  if (outcome.bad_input) throw UsageError(outcome.error);
  const bool known = outcome.result.has_value();
  const double time = known ? outcome.result->time().value() : NAN;
  const double rate = known ? outcome.result->collective()->bus_bandwidth.value() : NAN;
  times.values.push_back(time);
  rates.values.push_back(rate);
  if (band) {
    const Span range = range_of(outcome);
    times.ranges.push_back(range);
    rates.ranges.push_back(known ? Span{rate * time / range.high, rate * time / range.low} : Span{});
  }
  return known ? "" : outcome.error;
}

}  // namespace

ExitStatus plot_bandwidth(const PlotOptions& options) {
  const std::vector<double> sizes = parse_sizes(options.sizes.empty() ? "1 KB..10 GB" : options.sizes);
  const std::vector<MeasuredCase> measured = read_measured(options.cases);
  std::vector<BandwidthChart> charts;
  std::vector<Case> cases;
  for (const Case& row : panel_cases(options)) {
    const Scenario scenario = scenario_of(row);
    charts.push_back(chart_of(scenario, sizes, measured));
    for (const std::string& algorithm : algorithms_of(options, scenario)) {
      charts.back().times.curves.push_back({algorithm, {}});
      const Case by = options.algorithms.empty() ? row : with(row, "workload.collective.algorithm", algorithm);
      for (const double size : sizes)
        cases.push_back(with(by, "workload.collective.size", fmt::format("{:.0f} B", size)));
    }
    charts.back().bandwidths.curves = charts.back().times.curves;
  }
  const std::vector<Outcome> outcomes = predict_cases(cases, options.fidelity, options.jobs);
  auto outcome = outcomes.begin();
  bool complete = true;
  for (BandwidthChart& chart : charts) {
    for (std::size_t c = 0; c < chart.times.curves.size(); ++c) {
      Curve &times = chart.times.curves[c], &rates = chart.bandwidths.curves[c];
      std::string why;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const std::string missing = add_message(times, rates, *outcome++, options.band);
        if (!missing.empty()) why = missing;
      }
      if (why.empty()) continue;
      complete = false;
      warn(fmt::format("{}, {}: {}", chart.times.title, times.name, why));
    }
  }
  return show(options, charts, complete);
}

}  // namespace foretrain
