#include "reports/result/csv.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <optional>
#include <string_view>

#include "model/base/units.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

std::string cell(double number) { return fmt::format("{}", number); }
std::string cell(Seconds time) { return cell(time.value()); }

/// What a training step says in one column.
struct Column {
  std::string name;
  std::function<std::string(const TrainResult&)> train;
};

std::vector<Column> make_train_columns() {
  std::vector<Column> columns = {
      {"step_time_s", [](const TrainResult& t) { return cell(t.step_time); }},
      {"samples_per_second", [](const TrainResult& t) { return cell(t.samples_per_second); }},
      {"tokens_per_second", [](const TrainResult& t) { return cell(t.tokens_per_second); }},
      {"mfu", [](const TrainResult& t) { return cell(t.mfu); }}};
  for (const BreakdownPart& part : breakdown_parts) {
    columns.push_back(
        {std::string(part.key) + "_s", [part](const TrainResult& t) { return cell(t.breakdown.*part.time); }});
  }
  columns.push_back(
      {"memory_per_gpu_bytes", [](const TrainResult& t) { return fmt::format("{:.0f}", t.memory.total().value()); }});
  columns.push_back({"fits", [](const TrainResult& t) { return std::string(t.memory.fits() ? "true" : "false"); }});
  return columns;
}

const std::vector<Column>& train_columns() {
  static const std::vector<Column> columns = make_train_columns();
  return columns;
}

/// What is known of the whole training, where its length, its price or failures are stated.
struct OutlookColumn {
  std::string_view name;
  std::optional<double> (*of)(const TrainResult&);
};

std::optional<double> in_seconds(const std::optional<Seconds>& time) {
  return time ? std::optional(time->value()) : std::nullopt;
}

constexpr std::array<OutlookColumn, 6> outlook_columns = {
    {{"time_to_train_s", [](const TrainResult& t) { return in_seconds(t.time_to_train); }},
     {"time_to_train_low_s", [](const TrainResult& t) { return t.bill ? in_seconds(t.bill->shortest) : std::nullopt; }},
     {"time_to_train_high_s", [](const TrainResult& t) { return t.bill ? in_seconds(t.bill->longest) : std::nullopt; }},
     {"cost_low_usd", [](const TrainResult& t) { return t.bill ? t.bill->usd_low : std::nullopt; }},
     {"cost_high_usd", [](const TrainResult& t) { return t.bill ? t.bill->usd_high : std::nullopt; }},
     {"goodput", [](const TrainResult& t) {
        return t.goodput ? std::optional(t.goodput->simulated.shares.useful) : std::nullopt;
      }}}};

}  // namespace

const std::vector<std::string>& predicted_columns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Column& column : train_columns()) all.push_back("predicted." + column.name);
    for (const char* other : {"time_s", "bus_bandwidth_bytes_per_second", "cost_usd", "low_s", "high_s"}) {
      all.push_back(std::string("predicted.") + other);
    }
    for (const OutlookColumn& column : outlook_columns) all.push_back("predicted." + std::string(column.name));
    all.emplace_back("predicted.error");
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
  const TrainResult* train = result.train();
  for (const Column& column : train_columns()) cells.push_back(train != nullptr ? column.train(*train) : "");
  cells.push_back(train != nullptr ? "" : cell(result.time()));
  cells.push_back(result.collective() ? cell(result.collective()->bus_bandwidth.value()) : "");
  cells.push_back(train != nullptr && train->cost_usd ? cell(*train->cost_usd) : "");
  const bool has_range = result.uncertainty_high > result.uncertainty_low;
  cells.push_back(has_range ? cell(result.uncertainty_low) : "");
  cells.push_back(has_range ? cell(result.uncertainty_high) : "");
  for (const OutlookColumn& column : outlook_columns) {
    const std::optional<double> value = train != nullptr ? column.of(*train) : std::nullopt;
    cells.push_back(value ? cell(*value) : "");
  }
  cells.emplace_back();
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
