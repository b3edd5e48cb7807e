#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot_sweep.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

bool is_number(const std::string& value) {
  try {
    split_number_and_unit(value);
    return true;
  } catch (const UnitError&) {
    return false;
  }
}

/// The axis' values as numbers in the unit of the first; nothing where one of them is a name.
std::vector<double> numbers_of(const Variation& axis) {
  std::vector<double> numbers;
  if (!std::ranges::all_of(axis.values, is_number)) return numbers;
  try {
    const std::string unit = split_number_and_unit(axis.values.front()).unit;
    for (const std::string& value : axis.values) {
      numbers.push_back(unit.empty() ? parse_number(value) : parse_in_unit(value, unit));
    }
  } catch (const UnitError& error) {
    throw UsageError(
        fmt::format("plot sweep: --vary {}: {}; the axis needs names, or numbers of one unit", axis.key, error.got()));
  }
  return numbers;
}

/// Puts the axis' numbers in increasing order; names stay as they are.
void sort_axis(Variation& axis, std::vector<double>& numbers) {
  std::vector<std::pair<double, std::string>> points;
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    points.emplace_back(numbers.empty() ? static_cast<double>(i) : numbers[i], axis.values[i]);
  }
  std::ranges::sort(points);
  std::set<std::string> names;
  for (std::size_t i = 0; i < points.size(); ++i) {
    axis.values[i] = points[i].second;
    if (!numbers.empty()) numbers[i] = points[i].first;
    const bool twice = numbers.empty() ? !names.insert(axis.values[i]).second : i > 0 && numbers[i] == numbers[i - 1];
    if (twice) throw UsageError("plot sweep: --vary " + axis.key + ": a value is given twice");
  }
}

/// A quantity that may be asked for beside the time: what an axis calls it, and its value where a result has it.
struct Quantity {
  std::string_view name, axis;
  std::optional<double> (*value)(const Result& result);
};

template <typename Value>
std::optional<double> of_training(const Result& result, Value value) {
  return result.train() != nullptr ? value(*result.train()) : std::nullopt;
}

using Number = std::optional<double>;
constexpr std::array<Quantity, 7> quantities = {
    {{"time", "time", [](const Result& r) { return Number(r.time().value()); }},
     {"samples_per_second", "samples a second",
      [](const Result& r) { return of_training(r, [](const auto& t) { return Number(t.samples_per_second); }); }},
     {"tokens_per_second", "tokens a second",
      [](const Result& r) { return of_training(r, [](const auto& t) { return Number(t.tokens_per_second); }); }},
     {"mfu", "model FLOPs utilisation (%)",
      [](const Result& r) { return of_training(r, [](const auto& t) { return Number(100.0 * t.mfu); }); }},
     {"memory", "memory of a GPU (GB)",
      [](const Result& r) {
        return of_training(r, [](const auto& t) { return Number(t.memory.total().value() / 1e9); });
      }},
     {"cost", "cost (USD)", [](const Result& r) { return of_training(r, [](const auto& t) { return t.cost_usd; }); }},
     {"bus_bandwidth", "bus bandwidth (GB/s)", [](const Result& r) {
        return r.collective() != nullptr ? Number(r.collective()->bus_bandwidth.value() / 1e9) : std::nullopt;
      }}}};

const Quantity& quantity_named(const std::string& name) {
  const auto* const found = std::ranges::find(quantities, name, &Quantity::name);
  if (found != quantities.end()) return *found;
  std::vector<std::string_view> known;
  for (const Quantity& quantity : quantities) known.push_back(quantity.name);
  throw UsageError(
      fmt::format("plot sweep: --quantity {}: there is no such quantity; {}", name, fmt::join(known, ", ")));
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

/// Of every curve and value; times in the unit that suits the longest. `at` finds a curve's outcome at a value.
template <typename At>
SweepQuantity quantity_of(const Quantity& quantity, const SweepFigure& figure, bool band, At at) {
  const bool time = quantity.name == "time";
  const TimeUnit unit = time_unit(time_range(figure.curves, figure.steps).high);
  const double factor = time ? 1.0 / unit.size.value() : 1.0;
  SweepQuantity drawn{time ? fmt::format("time ({})", unit.name) : std::string(quantity.axis), {}};
  bool known = false;
  for (std::size_t c = 0; c < figure.steps; ++c) {
    SweepQuantity::Curve& curve = drawn.curves.emplace_back(SweepQuantity::Curve{figure.curves[c].name, {}});
    for (std::size_t i = 0; i < figure.labels.size(); ++i) {
      const Outcome& outcome = at(c, i);
      const Number value = outcome.result ? quantity.value(*outcome.result) : std::nullopt;
      curve.values.push_back(value ? Number(*value * factor) : std::nullopt);
      known = known || value;
      if (!time || !band) continue;
      const TimeRange range = range_of(outcome);
      curve.ranges.push_back({range.low.value() * factor, range.high.value() * factor});
    }
  }
  if (!known) throw UsageError(fmt::format("plot sweep: --quantity {}: no result has it", quantity.name));
  return drawn;
}

/// Predicts every point; the first varied key is the axis, the others make one curve per combination. A single curve of
/// training steps comes with its parts: compute, exposed communication and what else takes time. Points without a
/// prediction are absent, and the reasons are warnings.
SweepFigure predict_sweep(const PlotOptions& options, const std::vector<std::string>& wanted) {
  std::vector<Variation> variations = variations_of(options);
  SweepFigure figure;
  Variation& axis = variations.front();
  figure.values = numbers_of(axis);
  sort_axis(axis, figure.values);
  figure.key = axis.key;
  figure.labels = axis.values;
  figure.title = load_scenario(options.file(), options.overrides).name;

  const Combinations all(options.file(), options.overrides, variations);
  std::vector<Case> cases;
  for (std::size_t i = 0; i < all.size(); ++i) cases.push_back(all.at(i));
  const std::vector<Outcome> outcomes = predict_cases(options, cases);
  const std::size_t curves = cases.size() / figure.labels.size();  // the axis changes slowest
  const auto at = [&](std::size_t c, std::size_t i) -> const Outcome& { return outcomes[i * curves + c]; };
  figure.steps = curves;
  for (std::size_t i = 0; i < figure.labels.size() && figure.values.empty(); ++i) {
    figure.labels[i] = all.first_words(i * curves);
  }
  for (std::size_t c = 0; c < curves; ++c) {
    TimeCurve curve{variations.size() == 1 ? "step" : all.words(c, 1), {}};
    for (std::size_t i = 0; i < figure.labels.size(); ++i) {
      const Outcome& outcome = at(c, i);
      if (!outcome.result) warn(cases[i * curves + c].name + ": " + outcome.error);
      curve.times.push_back(outcome.result ? std::optional(outcome.result->time()) : std::nullopt);
      if (options.band) curve.ranges.push_back(range_of(outcome));
    }
    figure.curves.push_back(std::move(curve));
  }
  if (std::ranges::none_of(outcomes, [](const Outcome& outcome) { return outcome.result.has_value(); })) return figure;
  const bool trains =
      std::ranges::any_of(outcomes, [](const Outcome& outcome) { return outcome.result && outcome.result->train(); });
  if (!trains && variations.size() == 1) figure.curves.front().name = "time";
  for (const std::string& name : wanted) {
    figure.quantities.push_back(quantity_of(quantity_named(name), figure, options.band, at));
  }
  if (figure.values.empty() && wanted.empty()) {
    figure.quantities.push_back(quantity_of(quantities.front(), figure, options.band, at));
  }
  if (curves == 1 && trains && figure.quantities.empty()) add_parts(outcomes, figure);
  return figure;
}

}  // namespace

void add_plot_sweep(CLI::App& plot, ExitStatus& status) {
  const auto wanted = std::make_shared<std::vector<std::string>>();
  const PlotCommand command = {
      "sweep",
      "time over the values of one key, and its best value",
      "FILE",
      "the scenario to vary",
      takes_overrides | takes_fidelity | takes_jobs | takes_band,
      "the axis, numbers or names, as in `foretrain sweep`; further ones make a curve for each combination"};
  CLI::App* const app = add_plot_command(plot, status, command, [wanted](const PlotOptions& options) {
    for (const std::string& name : *wanted) quantity_named(name);
    const SweepFigure sweep = predict_sweep(options, *wanted);
    return show(options, sweep, is_complete(sweep.curves));
  });
  app->get_option("--vary")->required();
  app->add_option("--quantity", *wanted,
                  "a panel for each: time, memory, samples_per_second, tokens_per_second, mfu, cost")
      ->delimiter(',')
      ->type_name("NAME,NAME,…");
}

}  // namespace foretrain
