#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot_sweep.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

/// The axis' values as numbers in the unit of the first, in increasing order.
void sort_axis(Variation& axis, std::vector<double>& numbers) {
  std::vector<std::pair<double, std::string>> points;
  try {
    const std::string unit = split_number_and_unit(axis.values.front()).unit;
    for (const std::string& value : axis.values) {
      points.emplace_back(unit.empty() ? parse_number(value) : parse_in_unit(value, unit), value);
    }
  } catch (const UnitError& error) {
    throw UsageError(fmt::format("plot sweep: --vary {}: {}; the first varied key is the axis and needs numbers",
                                 axis.key, error.got()));
  }
  std::sort(points.begin(), points.end());
  for (std::size_t i = 0; i < points.size(); ++i) {
    numbers.push_back(points[i].first);
    axis.values[i] = points[i].second;
  }
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) {
    throw UsageError("plot sweep: --vary " + axis.key + ": a value is given twice");
  }
}

/// What tells a curve from the others: its value of the second key, or of several keys their names as well.
std::string curve_name(const Case& row, std::size_t keys) {
  const auto first = row.overrides.end() - static_cast<std::ptrdiff_t>(keys);
  if (keys == 1) return first->value;
  std::string name;
  for (auto change = first; change != row.overrides.end(); ++change) {
    name +=
        fmt::format("{}{} {}", name.empty() ? "" : ", ", change->key.substr(change->key.rfind('.') + 1), change->value);
  }
  return name;
}

void add_parts(const std::vector<Outcome>& outcomes, SweepFigure& figure) {
  constexpr double worth_drawing = 0.01;  // of a step, somewhere
  for (const auto& [name, key, part] : breakdown_parts) {
    TimeCurve curve{std::string(name), {}};
    bool drawn = false;
    for (const Outcome& outcome : outcomes) {
      if (!outcome.result || !outcome.result->train()) {
        curve.times.emplace_back();
        continue;
      }
      const Breakdown& breakdown = outcome.result->train()->breakdown;
      curve.times.emplace_back(breakdown.*part);
      drawn = drawn || breakdown.*part > breakdown.total() * worth_drawing;
    }
    if (drawn) figure.curves.push_back(std::move(curve));
  }
}

/// Predicts every point; the first varied key is the axis, the others make one curve per combination. A single curve of
/// training steps comes with its parts: compute, exposed communication and what else takes time. Points without a
/// prediction are absent, and the reasons are warnings.
SweepFigure predict_sweep(const PlotOptions& options) {
  std::vector<Variation> variations = variations_of(options);
  SweepFigure figure;
  Variation& axis = variations.front();
  sort_axis(axis, figure.values);
  figure.key = axis.key;
  figure.labels = axis.values;
  figure.title = load_scenario(options.file(), options.overrides).name;

  const std::vector<Case> cases = combinations(options.file(), options.overrides, variations);
  const std::vector<Outcome> outcomes = predict_cases(options, cases);
  const std::size_t curves = cases.size() / figure.values.size();  // the axis changes slowest
  figure.steps = curves;
  const std::size_t keys = cases.front().overrides.size() - options.overrides.size() - axis.keys().size();
  for (std::size_t c = 0; c < curves; ++c) {
    TimeCurve curve{keys == 0 ? "step" : curve_name(cases[c], keys), {}};
    for (std::size_t i = 0; i < figure.values.size(); ++i) {
      const Outcome& outcome = outcomes[i * curves + c];
      if (!outcome.result) warn(cases[i * curves + c].name + ": " + outcome.error);
      curve.times.push_back(outcome.result ? std::optional(outcome.result->time()) : std::nullopt);
    }
    figure.curves.push_back(std::move(curve));
  }
  if (curves == 1) {
    const bool trains = std::any_of(outcomes.begin(), outcomes.end(),
                                    [](const Outcome& outcome) { return outcome.result && outcome.result->train(); });
    if (trains) {
      add_parts(outcomes, figure);
    } else {
      figure.curves.front().name = "time";
    }
  }
  return figure;
}

}  // namespace

void add_plot_sweep(CLI::App& plot, ExitStatus& status) {
  const PlotCommand command = {
      "sweep",
      "time over the values of one key, and its best value",
      "FILE",
      "the scenario to vary",
      takes_overrides | takes_fidelity | takes_jobs,
      "the axis, as in `foretrain sweep`; further ones make a curve for each combination of their values"};
  add_plot_command(plot, status, command,
                   [](const PlotOptions& options) {
                     const SweepFigure sweep = predict_sweep(options);
                     return show(options, sweep, is_complete(sweep.curves));
                   })
      ->get_option("--vary")
      ->required();
}

}  // namespace foretrain
