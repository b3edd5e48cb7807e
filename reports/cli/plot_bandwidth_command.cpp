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
#include "reports/figure/bandwidth.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

struct BandwidthOptions {
  std::vector<std::string> algorithms;  ///< none: each scenario's own
  std::vector<std::string> tables;
  std::string sizes = "1 KB..10 GB";
};

constexpr int points_per_decade = 6;

/// "1 KB..10 GB": evenly spread on a logarithmic axis, in whole bytes.
std::vector<Bytes> parse_sizes(const std::string& text) {
  const std::size_t dots = text.find("..");
  try {
    if (dots == std::string::npos) throw UnitError("no range", "");
    const double low = parse_quantity<Bytes>(text.substr(0, dots)).value();
    const double high = parse_quantity<Bytes>(text.substr(dots + 2)).value();
    if (low < 1.0 || high < low) throw UnitError("the range must begin at 1 B or more and not end before", "");
    const int steps = static_cast<int>(std::ceil(std::log10(high / low) * points_per_decade - 1e-9));
    std::vector<Bytes> sizes;
    for (int i = 0; i <= steps; ++i) {
      sizes.emplace_back(
          std::round(i == steps ? high : low * std::pow(10.0, static_cast<double>(i) / points_per_decade)));
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

/// The measured cases of a table as points, each with its scenario.
struct MeasuredCase {
  Scenario scenario;
  BandwidthPoint point;
};

std::vector<MeasuredCase> read_measured(const std::vector<std::string>& tables) {
  std::vector<MeasuredCase> cases;
  for (const std::string& table : tables) {
    for (const Case& row : read_cases(table)) {
      Scenario scenario = scenario_of(row);
      if (!std::holds_alternative<CollectiveWorkload>(scenario.workload)) continue;
      const CollectiveWorkload& collective = collective_of(scenario);
      const double factor = bus_bandwidth_factor(collective.operation, collective.ranks);
      for (const Measurement& measurement : row.measured) {
        BandwidthPoint point{collective.size, Seconds(0), BytesPerSecond(0)};
        if (measurement.quantity == MeasuredQuantity::time) {
          point.time = Seconds(measurement.value);
          point.bus_bandwidth = collective.size / point.time * factor;
        } else if (measurement.quantity == MeasuredQuantity::bus_bandwidth) {
          point.bus_bandwidth = BytesPerSecond(measurement.value);
          point.time = collective.size * factor / point.bus_bandwidth;
        } else {
          continue;
        }
        cases.push_back({std::move(scenario), point});
        break;
      }
    }
  }
  return cases;
}

/// One panel per file and combination of varied values.
std::vector<Case> panel_cases(const PlotOptions& shared) {
  std::vector<Case> cases;
  for (const std::string& file : shared.files) {
    for (Case& row : combinations(file, shared.overrides, variations_of(shared))) cases.push_back(std::move(row));
  }
  return cases;
}

Case with(Case row, const std::string& key, const std::string& value) {
  row.overrides.push_back({key, value, {fmt::format("{}={}", key, value), 0, 0}});
  return row;
}

/// The algorithms of a panel's curves.
std::vector<std::string> algorithms_of(const BandwidthOptions& options, const Scenario& scenario) {
  if (!options.algorithms.empty()) return options.algorithms;
  return {std::string(name(scenario.plan.sync.algorithm))};
}

BandwidthPanel empty_panel(const Scenario& scenario, const std::vector<MeasuredCase>& measured) {
  const CollectiveWorkload& collective = collective_of(scenario);
  BandwidthPanel panel;
  panel.title = scenario.cluster.node.name;
  const std::string nodes = scenario.cluster.nodes > 1 ? fmt::format(" on {} nodes", scenario.cluster.nodes) : "";
  panel.subtitle =
      fmt::format("{}, {} GPUs{}", spoken(std::string(name(collective.operation))), collective.ranks, nodes);
  for (const MeasuredCase& one : measured) {
    if (same_setting(scenario, one.scenario)) panel.measured.push_back(one.point);
  }
  return panel;
}

ExitStatus run(const PlotOptions& shared, const BandwidthOptions& options) {
  BandwidthFigure figure{parse_sizes(options.sizes), {}};
  const std::vector<MeasuredCase> measured = read_measured(options.tables);
  const std::vector<Case> panels = panel_cases(shared);
  std::vector<Case> cases;
  for (const Case& row : panels) {
    const Scenario scenario = scenario_of(row);
    BandwidthPanel& panel = figure.panels.emplace_back(empty_panel(scenario, measured));
    for (const std::string& algorithm : algorithms_of(options, scenario)) {
      panel.curves.push_back({algorithm, {}});
      const Case by = options.algorithms.empty() ? row : with(row, "workload.collective.algorithm", algorithm);
      for (const Bytes size : figure.sizes) {
        cases.push_back(with(by, "workload.collective.size", fmt::format("{:.0f} B", size.value())));
      }
    }
  }
  const std::vector<Outcome> outcomes = predict_cases(shared, cases);
  auto outcome = outcomes.begin();
  bool complete = true;
  for (BandwidthPanel& panel : figure.panels) {
    for (BandwidthCurve& curve : panel.curves) {
      std::string why;
      for (const Bytes size : figure.sizes) {
        const Outcome& one = *outcome++;
        auto& point = curve.points.emplace_back();
        if (one.result) {
          point = BandwidthPoint{size, one.result->collective()->time, one.result->collective()->bus_bandwidth};
          if (shared.band) point->low = range_of(one).low, point->high = range_of(one).high;
        } else if (one.bad_input) {
          throw UsageError(one.error);
        } else {
          why = one.error;
        }
      }
      if (why.empty()) continue;
      complete = false;
      warn(fmt::format("{}, {}: {}", panel.title, curve.name, why));
    }
  }
  return show(shared, figure, complete);
}

}  // namespace

void add_plot_bandwidth(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<BandwidthOptions>();
  CLI::App* command =
      add_plot_command(plot, status,
                       {"bandwidth", "bus bandwidth and time of a collective by message size, for several algorithms",
                        "FILE", "scenarios with a collective: one panel each",
                        many_inputs | takes_overrides | takes_fidelity | takes_jobs | takes_band,
                        "one panel per combination of values, as in `foretrain sweep`"},
                       [options](const PlotOptions& shared) { return run(shared, *options); });
  command
      ->add_option("--algorithms", options->algorithms,
                   "values of workload.collective.algorithm (default: the scenario's own)")
      ->delimiter(',')
      ->type_name("NAME,NAME,…");
  command->add_option("--sizes", options->sizes, "from the smallest to the largest message (default: 1 KB..10 GB)")
      ->type_name("A..B");
  command
      ->add_option("--cases", options->tables,
                   "draw the measured points of these tables too, where machine, ranks and operation are the same")
      ->type_name("CASES.csv");
}

}  // namespace foretrain
