#include "reports/result/csv.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <optional>

#include "model/base/units.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

std::string cell(const std::string& text) { return text; }
std::string cell(double number) { return fmt::format("{}", number); }
std::string cell(Seconds time) { return cell(time.value()); }
template <typename T>
std::string cell(const std::optional<T>& value) {
  return value ? cell(*value) : "";
}

/// A column and what a result says in it.
struct Column {
  std::string name;
  std::function<std::string(const Result&)> cell;
};

/// Empty where nothing is trained.
template <typename Value>
Column step_column(std::string name, Value value) {
  return {std::move(name), [value](const Result& r) { return r.train() ? cell(value(*r.train())) : std::string(); }};
}

Column range_column(std::string name, Seconds Result::*end) {
  return {std::move(name),
          [end](const Result& r) { return r.uncertainty_high > r.uncertainty_low ? cell(r.*end) : std::string(); }};
}

std::vector<Column> make_columns() {
  using Number = std::optional<double>;
  using Time = std::optional<Seconds>;
  std::vector<Column> columns = {
      step_column("step_time_s", [](const TrainResult& t) { return t.step_time; }),
      step_column("samples_per_second", [](const TrainResult& t) { return t.samples_per_second; }),
      step_column("tokens_per_second", [](const TrainResult& t) { return t.tokens_per_second; }),
      step_column("mfu", [](const TrainResult& t) { return t.mfu; })};
  for (const BreakdownPart& part : breakdown_parts) {
    columns.push_back(step_column(std::string(part.key) + "_s",
                                  [time = part.time](const TrainResult& t) { return t.breakdown.*time; }));
  }
  const std::vector<Column> others = {
      step_column("memory_per_gpu_bytes",
                  [](const TrainResult& t) { return fmt::format("{:.0f}", t.memory.total().value()); }),
      step_column("fits", [](const TrainResult& t) { return std::string(t.memory.fits() ? "true" : "false"); }),
      {"time_s", [](const Result& r) { return r.train() ? std::string() : cell(r.time()); }},
      {"bus_bandwidth_bytes_per_second",
       [](const Result& r) { return r.collective() ? cell(r.collective()->bus_bandwidth.value()) : std::string(); }},
      step_column("cost_usd", [](const TrainResult& t) { return t.cost_usd; }),
      range_column("low_s", &Result::uncertainty_low),
      range_column("high_s", &Result::uncertainty_high),
      step_column("time_to_train_s", [](const TrainResult& t) { return t.time_to_train; }),
      step_column("time_to_train_low_s", [](const TrainResult& t) { return t.bill ? t.bill->shortest : Time(); }),
      step_column("time_to_train_high_s", [](const TrainResult& t) { return t.bill ? t.bill->longest : Time(); }),
      step_column("cost_low_usd", [](const TrainResult& t) { return t.bill ? t.bill->usd_low : Number(); }),
      step_column("cost_high_usd", [](const TrainResult& t) { return t.bill ? t.bill->usd_high : Number(); }),
      step_column("goodput",
                  [](const TrainResult& t) { return t.goodput ? t.goodput->simulated.shares.useful : Number(); }),
      {"error", [](const Result&) { return std::string(); }}};
  columns.insert(columns.end(), others.begin(), others.end());
  return columns;
}

const std::vector<Column>& columns() {
  static const std::vector<Column> all = make_columns();
  return all;
}

}  // namespace

const std::vector<std::string>& predicted_columns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Column& column : columns()) all.push_back("predicted." + column.name);
    return all;
  }();
  return names;
}

CellKind kind_of_column(std::string_view name) {
  if (!name.starts_with("predicted.") || name == "predicted.error") return CellKind::text;
  return name == "predicted.fits" ? CellKind::flag : CellKind::number;
}

std::vector<std::string> predicted_cells(const Result& result) {
  std::vector<std::string> cells;
  for (const Column& column : columns()) cells.push_back(column.cell(result));
  return cells;
}

std::vector<std::string> failed_cells(const std::string& why) {
  std::vector<std::string> cells(predicted_columns().size());
  cells.back() = why;
  return cells;
}

std::optional<double> magnitude(std::string_view cell) {
  using Parser = double (*)(std::string_view);
  static constexpr std::array<Parser, 4> parsers = {
      parse_number, [](std::string_view t) { return parse_quantity<Bytes>(t).value(); },
      [](std::string_view t) { return parse_quantity<BytesPerSecond>(t).value(); },
      [](std::string_view t) { return parse_quantity<Seconds>(t).value(); }};
  for (const Parser parser : parsers) {
    try {
      return parser(cell);
    } catch (const UnitError&) {
      // Of another dimension: the next one.
    }
  }
  return std::nullopt;
}

}  // namespace foretrain
