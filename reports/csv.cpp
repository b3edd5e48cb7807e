#include "reports/csv.hpp"

#include <fmt/format.h>

#include <functional>

#include "reports/names.hpp"

namespace foretrain {

namespace {

std::string time_cell(Seconds time) { return fmt::format("{} s", time.value()); }
std::string number_cell(double number) { return fmt::format("{}", number); }

/// What a training step says in one column.
struct Column {
  std::string name;
  std::function<std::string(const TrainResult&)> train;
};

std::vector<Column> make_train_columns() {
  std::vector<Column> columns = {
      {"step_time", [](const TrainResult& t) { return time_cell(t.step_time); }},
      {"samples_per_second", [](const TrainResult& t) { return number_cell(t.samples_per_second); }},
      {"tokens_per_second", [](const TrainResult& t) { return number_cell(t.tokens_per_second); }},
      {"mfu", [](const TrainResult& t) { return number_cell(t.mfu); }}};
  for (const BreakdownPart& part : breakdown_parts) {
    columns.push_back(
        {std::string(part.key), [part](const TrainResult& t) { return time_cell(t.breakdown.*part.time); }});
  }
  columns.push_back(
      {"memory_per_gpu", [](const TrainResult& t) { return fmt::format("{:.0f} B", t.memory.total().value()); }});
  columns.push_back({"fits", [](const TrainResult& t) { return std::string(t.memory.fits() ? "true" : "false"); }});
  return columns;
}

const std::vector<Column>& train_columns() {
  static const std::vector<Column> columns = make_train_columns();
  return columns;
}

}  // namespace

const std::vector<std::string>& predicted_columns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Column& column : train_columns()) all.push_back("predicted." + column.name);
    for (const char* other : {"time", "bus_bandwidth", "cost", "error"})
      all.push_back(std::string("predicted.") + other);
    return all;
  }();
  return names;
}

std::vector<std::string> predicted_cells(const Result& result) {
  std::vector<std::string> cells;
  for (const Column& column : train_columns()) cells.push_back(result.train ? column.train(*result.train) : "");
  cells.push_back(result.train ? "" : time_cell(result.time()));
  cells.push_back(result.collective ? fmt::format("{} B/s", result.collective->bus_bandwidth.value()) : "");
  cells.push_back(result.cost_usd ? fmt::format("{} USD", *result.cost_usd) : "");
  cells.emplace_back();
  return cells;
}

std::vector<std::string> failed_cells(const std::string& why) {
  std::vector<std::string> cells(predicted_columns().size());
  cells.back() = why;
  return cells;
}

}  // namespace foretrain
