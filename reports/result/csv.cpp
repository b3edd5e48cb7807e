#include "reports/result/csv.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>

#include "model/base/units.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

std::string cell(double number) { return fmt::format("{}", number); }
std::string cell(Seconds time) { return cell(time.value()); }
template <typename T>
std::string cell(const std::optional<T>& value) {
  return value ? cell(*value) : "";
}

/// Calls `add` with the name of each column and what the result says in it.
template <typename Add>
void for_each_column(const Result& result, const Add& add) {
  const TrainResult* train = result.train();
  const TrainResult::Bill* bill = train != nullptr && train->bill ? &*train->bill : nullptr;
  const auto of_train = [&](std::string_view name, auto member) {
    add(name, train != nullptr ? cell(std::invoke(member, *train)) : "");
  };
  const auto of_bill = [&](std::string_view name, auto member) {
    add(name, bill != nullptr ? cell(std::invoke(member, *bill)) : "");
  };
  of_train("step_time_s", &TrainResult::step_time);
  of_train("samples_per_second", &TrainResult::samples_per_second);
  of_train("tokens_per_second", &TrainResult::tokens_per_second);
  of_train("mfu", &TrainResult::mfu);
  for (const BreakdownPart& part : breakdown_parts) {
    of_train(std::string(part.key) + "_s", [&](const TrainResult& t) { return t.breakdown.*part.time; });
  }
  add("memory_per_gpu_bytes", train != nullptr ? fmt::format("{:.0f}", train->memory.total().value()) : "");
  add("fits", train == nullptr ? "" : train->memory.fits() ? "true" : "false");
  add("time_s", train == nullptr ? cell(result.time()) : "");
  add("bus_bandwidth_bytes_per_second", result.collective() ? cell(result.collective()->bus_bandwidth.value()) : "");
  of_train("cost_usd", &TrainResult::cost_usd);
  const bool has_range = result.uncertainty_high > result.uncertainty_low;
  add("low_s", has_range ? cell(result.uncertainty_low) : "");
  add("high_s", has_range ? cell(result.uncertainty_high) : "");
  of_train("time_to_train_s", &TrainResult::time_to_train);
  of_bill("time_to_train_low_s", &TrainResult::Bill::shortest);
  of_bill("time_to_train_high_s", &TrainResult::Bill::longest);
  of_bill("cost_low_usd", &TrainResult::Bill::usd_low);
  of_bill("cost_high_usd", &TrainResult::Bill::usd_high);
  add("goodput", train != nullptr && train->goodput ? cell(train->goodput->simulated.shares.useful) : "");
  add("error", "");
}

}  // namespace

const std::vector<std::string>& predicted_columns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for_each_column(
        {}, [&](std::string_view name, const std::string&) { all.push_back(fmt::format("predicted.{}", name)); });
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
  for_each_column(result, [&](std::string_view, std::string cell) { cells.push_back(std::move(cell)); });
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
