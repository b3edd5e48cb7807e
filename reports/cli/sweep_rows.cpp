#include "reports/cli/sweep_rows.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <unordered_map>

#include "model/base/csv.hpp"
#include "model/base/files.hpp"
#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "reports/cli/case_tables.hpp"
#include "reports/cli/sweep_fingerprint.hpp"
#include "reports/cli/vary.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_combinations = 10'000'000;  // in shards, or a night

SweepRows rows_of_variations(const SweepInput& input) {
  std::vector<Variation> variations;
  SweepRows rows;
  for (const std::string& text : input.variations) variations.push_back(parse_variation(text));
  // A file that is none would fail in every row; it is refused before anything is written.
  const YamlNode name = yaml_scalar(input.file, {input.file, 0, 0});
  cached_yaml_file(catalogue_file(CatalogueSection::run, Field(name, "FILE")).string());
  const auto all = std::make_shared<const Combinations>(input.file, input.overrides, variations, most_combinations);
  rows.varied = all->varied();
  rows.header = {"case", "base"};
  const std::vector<std::string> columns = all->columns();
  rows.header.insert(rows.header.end(), columns.begin(), columns.end());
  const auto numbers = std::make_shared<const std::vector<std::size_t>>(all->distinct());
  rows.count = numbers->size();
  rows.case_of = [all, numbers](std::size_t row) { return all->at((*numbers)[row]); };
  rows.cells_of = [all, numbers, columns](std::size_t row) {
    const Case made = all->at((*numbers)[row]);
    std::vector<std::string> cells = {made.name, made.base};
    for (const std::string& column : columns) cells.push_back(cell_of(made, column));
    return cells;
  };
  return rows;
}

/// The table as it is, without the predictions of an earlier sweep.
SweepRows rows_of_table(const SweepInput& input) {
  const auto cases = std::make_shared<std::vector<Case>>(read_cases(input.table));
  const auto cells = std::make_shared<std::vector<std::vector<std::string>>>();
  const CsvTable table = parse_csv(read_text_file(input.table), input.table);
  std::vector<std::size_t> columns;
  SweepRows rows;
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    if (table.header[i].text.starts_with("predicted.")) continue;
    columns.push_back(i);
    rows.header.push_back(table.header[i].text);
  }
  for (const CsvRow& row : table.rows) {
    std::vector<std::string>& own = cells->emplace_back();
    for (const std::size_t column : columns) own.push_back(row[column].text);
  }
  for (const std::string& text : input.overrides) {
    for (Case& row : *cases) row.overrides.push_back(parse_override(text));
  }
  if (std::ranges::find(rows.header, "case") != rows.header.end()) rows.varied = {"case"};
  rows.count = cases->size();
  rows.case_of = [cases](std::size_t row) { return (*cases)[row]; };
  rows.cells_of = [cells](std::size_t row) { return (*cells)[row]; };
  return rows;
}

/// What all combinations are made of: ten million of them are as soon known as ten.
void add_variations(const SweepInput& input, Fingerprint& fingerprint) {
  fingerprint.add_value(input.file, "");
  for (const std::string& text : input.variations) {
    const Variation variation = parse_variation(text);
    fingerprint.add(variation.key);
    for (std::size_t i = 0; i < variation.values.size(); ++i) {
      for (const std::string& value : variation.values_at(i)) fingerprint.add_value(value, "");
    }
  }
}

void add_rows(const SweepRows& rows, const SweepInput& input, Fingerprint& fingerprint) {
  const std::string folder = std::filesystem::path(input.table).parent_path().string();
  for (std::size_t row = 0; row < rows.count; ++row) {
    const std::vector<std::string> cells = rows.cells_of(row);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      rows.header[i] == "case" ? fingerprint.add(cells[i]) : fingerprint.add_value(cells[i], folder);
    }
  }
}

}  // namespace

SweepRows sweep_rows(const SweepInput& input) {
  return input.table.empty() ? rows_of_variations(input) : rows_of_table(input);
}

void bring_together(std::vector<std::size_t>& numbers, const SweepRows& rows) {
  struct Place {
    std::size_t hardware = 0, plan = 0, row = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::unordered_map<std::string, std::size_t> hardware, plans;
  std::vector<Place> places;
  const auto number_in = [](auto& known, const std::string& text) {
    return known.try_emplace(text, known.size()).first->second;
  };
  for (const std::size_t row : numbers) {
    const Case made = rows.case_of(row);
    std::string of_hardware = made.base, of_plan;
    for (const Override& change : made.overrides) {
      const bool of_layout = change.key.starts_with("plan") && !change.key.starts_with("plan.sync");
      if (change.key.starts_with("cluster")) of_hardware += "\n" + change.key + "=" + change.value;
      if (of_layout) of_plan += "\n" + change.key + "=" + change.value;
    }
    places.push_back({number_in(hardware, of_hardware), number_in(plans, of_plan), row});
  }
  std::ranges::sort(places);
  std::ranges::transform(places, numbers.begin(), &Place::row);
}

std::uint64_t fingerprint_of(const SweepRows& rows, const SweepInput& input, Fidelity fidelity) {
  Fingerprint fingerprint;
  fingerprint.add_identity("/proc/self/exe");
  fingerprint.add_folder(data_directory().string());
  fingerprint.add(name(fidelity));
  fingerprint.add_value(input.calibration, "");
  if (!input.anchor.empty()) fingerprint.add(read_text_file(input.anchor));
  for (const std::string& text : input.overrides) {
    fingerprint.add(text);
    fingerprint.add_value(text.substr(text.find('=') + 1), "");
  }
  for (const std::string& column : rows.header) fingerprint.add(column);
  input.table.empty() ? add_variations(input, fingerprint) : add_rows(rows, input, fingerprint);
  return fingerprint.value();
}

}  // namespace foretrain
