#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/cli/case_tables.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot.hpp"

namespace foretrain {

namespace {

constexpr std::string_view workers = "plan.data";  // as pictures call them

std::string curve_of(const Case& row, const std::vector<std::string>& columns) {
  std::string name = columns.empty() ? "step" : "";
  for (const std::string& column : columns) {
    const std::string cell = cell_of(row, column);
    if (cell.empty()) continue;
    const bool bare = column.starts_with("replay.") || cell.find_first_not_of("0123456789.") != std::string::npos;
    const std::string key = column.substr(column.rfind('.') + 1);
    const std::string words = column == workers ? fmt::format("{} worker{}", cell, cell == "1" ? "" : "s")
                              : bare            ? cell
                                                : fmt::format("{} {}", key, cell);
    name += (name.empty() ? "" : ", ") + words;
  }
  return name;
}

std::optional<Seconds> measured_step(const Case& row) {
  const auto found = std::ranges::find_if(row.measured, [](const Measurement& one) {
    return one.quantity == MeasuredQuantity::step_time || one.quantity == MeasuredQuantity::time;
  });
  return found == row.measured.end() ? std::nullopt : std::optional(Seconds(found->value));
}

CaseFigure predict_table(const PlotOptions& options) {
  std::vector<Case> cases = read_cases(options.file());
  std::vector<std::string> named = options.curves;
  named.push_back(options.x);
  if (!options.panels.empty()) named.push_back(options.panels);
  for (const std::string& column : named) {
    if (std::ranges::all_of(cases, [&](const Case& row) { return cell_of(row, column).empty(); })) {
      throw UsageError(fmt::format("plot cases: no row has a value in a column {}", column));
    }
  }
  std::erase_if(cases, [&](const Case& row) {
    return !measured_step(row) || cell_of(row, options.x).empty() || !wanted(row, options.where);
  });
  if (cases.empty()) throw UsageError("plot cases: no measured step of the table is wanted");
  const std::vector<Outcome> outcomes = predict_or_warn(options, cases);
  CaseFigure figure;
  figure.axis = keys::title_of(options.x);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!outcomes[i].result) continue;
    const std::string text = cell_of(cases[i], options.x);
    try {
      const double x = split_number_and_unit(text).number;
      add_point(figure, cell_of(cases[i], options.panels), curve_of(cases[i], options.curves),
                {x, text.substr(0, text.find(' ')), outcomes[i].result->time(), *measured_step(cases[i]),
                 options.band ? range_of(outcomes[i]) : Span()});
    } catch (const UnitError& error) {
      throw UsageError(fmt::format("plot cases: {}: {}: {}", cases[i].name, options.x, error.got()));
    }
    const std::string unit = split_number_and_unit(text).unit;
    if (!unit.empty() && !figure.axis.ends_with(")")) figure.axis += " (" + unit + ")";
  }
  return figure;
}

}  // namespace

ExitStatus plot_cases(const PlotOptions& options) {
  if (options.x.empty()) throw UsageError("plot cases: --x COLUMN, the column across, is required");
  return draw(options, to_figure(predict_table(options)));
}

}  // namespace foretrain
