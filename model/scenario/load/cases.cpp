#include "model/scenario/load/cases.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/base/csv.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"

namespace foretrain {

namespace {

struct QuantityRow {
  MeasuredQuantity quantity;
  std::string_view name;
  double (*parse)(std::string_view);  ///< to base units
};

constexpr std::array<QuantityRow, 8> quantity_rows = {
    {{MeasuredQuantity::step_time, "step_time", [](std::string_view t) { return parse_quantity<Seconds>(t).value(); }},
     {MeasuredQuantity::samples_per_second, "samples_per_second", parse_number},
     {MeasuredQuantity::tokens_per_second, "tokens_per_second", parse_number},
     {MeasuredQuantity::tokens_per_second_per_gpu, "tokens_per_second_per_gpu", parse_number},
     {MeasuredQuantity::time, "time", [](std::string_view t) { return parse_quantity<Seconds>(t).value(); }},
     {MeasuredQuantity::bus_bandwidth, "bus_bandwidth",
      [](std::string_view t) { return parse_quantity<BytesPerSecond>(t).value(); }},
     {MeasuredQuantity::memory_per_gpu, "memory_per_gpu",
      [](std::string_view t) { return parse_quantity<Bytes>(t).value(); }},
     {MeasuredQuantity::time_to_train, "time_to_train",
      [](std::string_view t) { return parse_quantity<Seconds>(t).value(); }}}};

constexpr std::string_view measured_prefix = "measured.";
constexpr std::string_view predicted_prefix = "predicted.";
constexpr std::string_view replay_prefix = "replay.";

const QuantityRow& quantity_row(const CsvCell& column) {
  const std::string_view wanted = std::string_view(column.text).substr(measured_prefix.size());
  std::vector<std::string> known;
  for (const QuantityRow& row : quantity_rows) {
    if (row.name == wanted) return row;
    known.emplace_back(row.name);
  }
  const auto nearest = nearest_word(wanted, known);
  throw ScenarioError(column.where, column.text, "unknown measured quantity",
                      nearest ? fmt::format("did you mean measured.{}?", *nearest) : or_list(known));
}

void check_column(const CsvCell& column) {
  const std::vector<std::string> sections = {"name", "description", "cluster", "workload",
                                             "plan", "background",  "jobs",    "calibration"};
  const std::string& text = column.text;
  if (text.starts_with(measured_prefix)) quantity_row(column);
  const std::string first = text.substr(0, text.find('.'));
  std::vector<std::string> known = {"case", "base", "group", "anchor", "source"};
  const bool plain = std::find(known.begin(), known.end(), text) != known.end();
  const bool key = std::find(sections.begin(), sections.end(), first) != sections.end();
  if (plain || key || text.starts_with(measured_prefix) || text.starts_with(predicted_prefix)) return;
  if (text.starts_with(replay_prefix)) return;
  known.insert(known.end(), {"measured.…"});
  known.insert(known.end(), sections.begin(), sections.end());
  throw ScenarioError(column.where, text, "unknown column",
                      did_you_mean(nearest_word(first, known),
                                   "case, base, group, anchor, source, a dotted key of a scenario, or measured.…"));
}

void read_measurement(const CsvCell& column, const CsvCell& cell, Case& row) {
  const QuantityRow& quantity = quantity_row(column);
  try {
    const double value = quantity.parse(cell.text);
    if (!(value > 0.0)) throw UnitError("a measurement of zero", "a value above zero");
    row.measured.push_back({quantity.quantity, value, cell.where});
  } catch (const UnitError& error) {
    if (!row.unreadable) row.unreadable = ScenarioError(cell.where, column.text, error.got(), error.expected());
  }
}

void read_cell(const CsvCell& column, const CsvCell& cell, Case& row) {
  const std::string text(trim(cell.text));
  if (text.empty() || column.text.starts_with(predicted_prefix)) return;
  if (column.text == "case") {
    row.name = text;
  } else if (column.text == "group") {
    row.group = text;
  } else if (column.text == "anchor") {
    row.anchor = text;
  } else if (column.text == "source") {
    row.source = text;
  } else if (column.text == "base") {
    row.base = text;
    row.base_where = cell.where;
  } else if (column.text.starts_with(replay_prefix)) {
    row.replay[column.text.substr(replay_prefix.size())] = text;
  } else if (column.text.starts_with(measured_prefix)) {
    read_measurement(column, cell, row);
  } else {
    row.overrides.push_back({column.text, text, cell.where});
  }
}

}  // namespace

std::string_view name(MeasuredQuantity quantity) { return quantity_rows[static_cast<std::size_t>(quantity)].name; }

std::vector<Case> read_cases_text(std::string_view text, const std::string& file_name) {
  const CsvTable table = parse_csv(text, file_name);
  for (const CsvCell& column : table.header) check_column(column);
  std::vector<Case> cases;
  cases.reserve(table.rows.size());
  for (const CsvRow& cells : table.rows) {
    Case row;
    row.where = cells.front().where;
    for (std::size_t i = 0; i < cells.size(); ++i) read_cell(table.header[i], cells[i], row);
    if (row.name.empty()) row.name = fmt::format("row {}", cases.size() + 1);
    cases.push_back(std::move(row));
  }
  return cases;
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::filesystem::path file = path;
  if (!path.has_parent_path() && !std::filesystem::exists(path)) {
    const std::filesystem::path shipped = data_directory() / "cases" / (path.stem().string() + ".csv");
    if (std::filesystem::exists(shipped)) file = shipped;
  }
  return read_cases_text(read_text_file(file), file.string());
}

YamlNode document_of(const Case& row) {
  if (row.unreadable) throw ScenarioError(*row.unreadable);
  YamlNode document = yaml_mapping(row.where);
  if (!row.base.empty()) {
    const YamlNode name = yaml_scalar(row.base, row.base_where);
    document = cached_yaml_file(catalogue_file(CatalogueSection::run, Field(name, "base")).string());
  }
  for (const Override& change : row.overrides) apply_override(document, change);
  return document;
}

Scenario scenario_of(const Case& row) {
  Scenario scenario = read_scenario(document_of(row), row.name);
  // The base's name would be the same for all rows.
  scenario.name = row.name;
  return scenario;
}

}  // namespace foretrain
