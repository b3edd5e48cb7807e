#include "model/scenario/load/cases.hpp"

#include <iterator>

#include "model/base/csv.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/load/load.hpp"

namespace foretrain {

namespace {

/// In base units.
double parse_measured(MeasuredQuantity quantity, std::string_view text) {
  using enum MeasuredQuantity;
  const bool is_time = quantity == step_time || quantity == time || quantity == time_to_train;
  if (is_time) return parse_quantity<Seconds>(text).value();
  if (quantity == bus_bandwidth) return parse_quantity<BytesPerSecond>(text).value();
  return quantity == memory_per_gpu ? parse_quantity<Bytes>(text).value() : parse_number(text);
}

/// Columns that are a text of the case as they stand.
struct PlainColumn {
  std::string_view name;
  std::string Case::*member;
};
constexpr PlainColumn plain_columns[] = {{"case", &Case::name},
                                         {"base", &Case::base},
                                         {"group", &Case::group},
                                         {"anchor", &Case::anchor},
                                         {"source", &Case::source}};

constexpr std::string_view measured_prefix = "measured.";
constexpr std::string_view predicted_prefix = "predicted.";
constexpr std::string_view replay_prefix = "replay.";

MeasuredQuantity measured_by(const CsvCell& column) {
  const std::string_view wanted = std::string_view(column.text).substr(measured_prefix.size());
  if (const auto quantity = value_of<MeasuredQuantity>(wanted)) return *quantity;
  const std::vector<std::string> known(names_of<MeasuredQuantity>.begin(), names_of<MeasuredQuantity>.end());
  const auto nearest = nearest_word(wanted, known);
  throw ScenarioError(column.where, column.text, "unknown measured quantity",
                      nearest ? fmt::format("did you mean measured.{}?", *nearest) : or_list(known));
}

void check_column(const CsvCell& column) {
  std::vector<std::string> sections;
  for (const keys::Key& key : keys::scenario.keys) sections.emplace_back(key.name);
  const std::string& text = column.text;
  if (text.starts_with(measured_prefix)) static_cast<void>(measured_by(column));
  const std::string first = text.substr(0, text.find('.'));
  std::vector<std::string> known;
  for (const PlainColumn& plain : plain_columns) known.emplace_back(plain.name);
  if (std::ranges::count(known, text) + std::ranges::count(sections, first) > 0) return;
  for (const std::string_view prefix : {measured_prefix, predicted_prefix, replay_prefix}) {
    if (text.starts_with(prefix)) return;
  }
  known.emplace_back("measured.…");
  known.insert(known.end(), sections.begin(), sections.end());
  throw ScenarioError(column.where, text, "unknown column",
                      did_you_mean(nearest_word(first, known),
                                   "case, base, group, anchor, source, a dotted key of a scenario, or measured.…"));
}

void read_measurement(const CsvCell& column, const CsvCell& cell, Case& row) {
  const MeasuredQuantity quantity = measured_by(column);
  try {
    const double value = parse_measured(quantity, cell.text);
    if (!(value > 0.0)) throw UnitError("a measurement of zero", "a value above zero");
    row.measured.push_back({quantity, value, cell.where});
  } catch (const UnitError& error) {
    if (!row.unreadable) row.unreadable = ScenarioError(cell.where, column.text, error.got(), error.expected());
  }
}

void read_cell(const CsvCell& column, const CsvCell& cell, Case& row) {
  const std::string text(trim(cell.text));
  if (text.empty() || column.text.starts_with(predicted_prefix)) return;
  if (column.text == "base") row.base_where = cell.where;
  const auto* const plain = std::ranges::find(plain_columns, column.text, &PlainColumn::name);
  if (plain != std::end(plain_columns)) {
    row.*plain->member = text;
  } else if (column.text.starts_with(replay_prefix)) {
    row.replay[column.text.substr(replay_prefix.size())] = text;
  } else if (column.text.starts_with(measured_prefix)) {
    read_measurement(column, cell, row);
  } else {
    row.overrides.push_back({keys::current_name(column.text), text, cell.where});
  }
}

Field base_of(const Case& row) { return {yaml_scalar(row.base, row.base_where), "base"}; }

using UnknownBases = std::map<std::string, std::shared_ptr<const ScenarioError>>;

/// Looks a base up once: a million rows may name one that nobody knows.
void find_base(Case& row, UnknownBases& known) {
  if (row.base.empty()) return;
  const auto [place, is_new] = known.try_emplace(row.base);
  if (is_new) {
    try {
      catalogue_file(Catalogue::run, base_of(row));
    } catch (const ScenarioError& error) {
      place->second = std::make_shared<const ScenarioError>(error);
    }
  }
  row.unknown_base = place->second;
}

}  // namespace

std::vector<Case> read_cases_text(std::string_view text, const std::string& file_name) {
  const CsvTable table = parse_csv(text, file_name);
  for (const CsvCell& column : table.header) check_column(column);
  std::vector<Case> cases;
  cases.reserve(table.rows.size());
  UnknownBases bases;
  for (const CsvRow& cells : table.rows) {
    Case row;
    row.where = cells.front().where;
    for (std::size_t i = 0; i < cells.size(); ++i) read_cell(table.header[i], cells[i], row);
    if (row.name.empty()) row.name = fmt::format("row {}", cases.size() + 1);
    find_base(row, bases);
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
  if (row.unknown_base != nullptr) {
    const ScenarioError& error = *row.unknown_base;
    throw ScenarioError(row.base_where, error.key(), error.got(), error.expected());
  }
  YamlNode document = yaml_mapping(row.where);
  if (!row.base.empty()) document = cached_yaml_file(catalogue_file(Catalogue::run, base_of(row)).string());
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
