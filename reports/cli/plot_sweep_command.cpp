#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot.hpp"
#include "reports/print/names.hpp"
#include "reports/result/csv.hpp"

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

/// A quantity that may be asked for: what an axis calls it, the columns of sweeps that it stands in, and its unit.
struct SweptQuantity {
  std::string_view name, axis;
  std::array<std::string_view, 2> columns;
  double unit = 1.0;

  /// NaN where the result has none.
  [[nodiscard]] double value(const Result& result) const {
    const std::vector<std::string>& names = predicted_columns();
    const std::vector<std::string> cells = predicted_cells(result);
    for (const std::string_view column : columns) {
      const auto found = std::ranges::find(names, "predicted." + std::string(column));
      if (found == names.end()) continue;
      const std::string& cell = cells[static_cast<std::size_t>(found - names.begin())];
      if (!cell.empty()) return parse_number(cell) / unit;
    }
    return NAN;
  }
};

constexpr std::array<SweptQuantity, 7> quantities = {
    {{"time", "time", {"step_time_s", "time_s"}},
     {"samples_per_second", "samples/s", {"samples_per_second"}},
     {"tokens_per_second", "tokens a second", {"tokens_per_second"}},
     {"mfu", "MFU (%)", {"mfu"}, 0.01},
     {"memory", "peak GPU memory (GB)", {"memory_per_gpu_bytes"}, 1e9},
     {"cost", "cost (USD)", {"cost_usd"}},
     {"bus_bandwidth", "bus bandwidth (GB/s)", {"bus_bandwidth_bytes_per_second"}, 1e9}}};

const SweptQuantity& quantity_named(const std::string& name) {
  const auto* const found = std::ranges::find(quantities, name, &SweptQuantity::name);
  if (found != quantities.end()) return *found;
  std::vector<std::string_view> known;
  for (const SweptQuantity& quantity : quantities) known.push_back(quantity.name);
  throw UsageError(
      fmt::format("plot sweep: --quantity {}: there is no such quantity; {}", name, fmt::join(known, ", ")));
}

void add_parts(const std::vector<Outcome>& outcomes, std::vector<Curve>& curves) {
  constexpr double worth_drawing = 0.01;  // of a step, somewhere
  for (const auto& [name, key, part] : breakdown_parts) {
    Curve curve{std::string(name), {}};
    bool drawn = false;
    for (const Outcome& outcome : outcomes) {
      const bool trains = outcome.result && outcome.result->train();
      const Breakdown breakdown = trains ? outcome.result->train()->breakdown : Breakdown();
      curve.values.push_back(trains ? (breakdown.*part).value() : NAN);
      drawn = drawn || breakdown.*part > breakdown.total() * worth_drawing;
    }
    if (drawn) curves.push_back(std::move(curve));
  }
}

/// The axis' numbers as places; none where they are names.
CurveChart empty_chart(const PlotOptions& options, Variation& axis) {
  CurveChart chart{.title = load_scenario(options.file(), options.overrides).name, .axis = keys::title_of(axis.key)};
  chart.places = numbers_of(axis);
  sort_axis(axis, chart.places);
  chart.labels = axis.values;
  return chart;
}

/// The first varied key is the axis, the others make one curve per combination.
class Sweep {
 public:
  explicit Sweep(const PlotOptions& options)
      : options_(options),
        variations_(parse_variations(options.variations)),
        times_(empty_chart(options, variations_.front())),
        all_(options.file(), options.overrides, variations_),
        curves_(all_.size() / times_.labels.size()) {  // the axis changes slowest
    std::vector<Case> cases;
    for (std::size_t i = 0; i < all_.size(); ++i) cases.push_back(all_.at(i));
    outcomes_ = predict_or_warn(options, cases);
    for (std::size_t i = 0; i < times_.labels.size() && times_.places.empty(); ++i) {
      times_.labels[i] = all_.first_words(i * curves_);
    }
  }

  SweepChart chart() && {
    const bool trains =
        std::ranges::any_of(outcomes_, [](const Outcome& one) { return one.result && one.result->train(); });
    const bool known = std::ranges::any_of(outcomes_, [](const Outcome& one) { return one.result.has_value(); });
    add_values(times_, quantities.front(), trains || !known ? "step" : "time");
    times_.scale = time_scale(span_of(times_.curves, curves_).high);
    SweepChart sweep{.key = variations_.front().key, .times = times_, .steps = curves_};
    std::vector<std::string> wanted = options_.quantities;
    if (times_.places.empty() && wanted.empty()) wanted = {"time"};
    for (const std::string& name : wanted) {
      if (known) sweep.quantities.push_back(chart_of(quantity_named(name)));
    }
    if (curves_ == 1 && trains && sweep.quantities.empty()) add_parts(outcomes_, sweep.times.curves);
    sweep.times.scale = time_scale(span_of(sweep.times.curves, sweep.times.curves.size()).high);
    return sweep;
  }

 private:
  [[nodiscard]] const Outcome& at(std::size_t c, std::size_t i) const { return outcomes_[i * curves_ + c]; }

  /// A curve for each combination, named `one` where there is but one.
  void add_values(CurveChart& chart, const SweptQuantity& quantity, const char* one) const {
    for (std::size_t c = 0; c < curves_; ++c) {
      Curve& curve = chart.curves.emplace_back(Curve{variations_.size() == 1 ? one : all_.words(c, 1), {}});
      for (std::size_t i = 0; i < chart.labels.size(); ++i) {
        const Outcome& outcome = at(c, i);
        curve.values.push_back(outcome.result ? quantity.value(*outcome.result) : NAN);
        if (options_.band && quantity.name == "time") curve.ranges.push_back(range_of(outcome));
      }
    }
  }

  [[nodiscard]] CurveChart chart_of(const SweptQuantity& quantity) const {
    if (quantity.name == "time") {
      CurveChart chart = times_;
      chart.title = "";
      return chart;
    }
    CurveChart chart{.axis = times_.axis, .places = times_.places, .labels = times_.labels};
    chart.scale = {std::string(quantity.axis), 1.0, value_text};
    add_values(chart, quantity, "step");
    if (span_of(chart.curves, curves_).high > 0.0) return chart;
    throw UsageError(fmt::format("plot sweep: --quantity {}: no result has it", quantity.name));
  }

  const PlotOptions& options_;
  std::vector<Variation> variations_;
  CurveChart times_;
  Combinations all_;
  std::size_t curves_;
  std::vector<Outcome> outcomes_;
};

}  // namespace

ExitStatus plot_sweep(const PlotOptions& options) {
  for (const std::string& name : options.quantities) quantity_named(name);
  const SweepChart sweep = Sweep(options).chart();
  return show(options, sweep, is_complete(sweep.times.curves));
}

}  // namespace foretrain
