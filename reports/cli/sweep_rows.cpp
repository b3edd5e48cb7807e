#include "reports/cli/sweep_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <unordered_map>

#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/hash.hpp"
#include "model/base/seen_files.hpp"
#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/yaml_document.hpp"
#include "reports/cli/case_tables.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/vary.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_combinations = 10'000'000;  // in shards, or a night

SweepRows rows_of_variations(const SweepInput& input) {
  const std::vector<Variation> variations = parse_variations(input.variations);
  SweepRows rows;
  // A file that is none would fail in every row; it is refused before anything is written.
  const Field name(yaml_scalar(input.file, {input.file, 0, 0}), "FILE");
  cached_yaml_file(catalogue_file(Catalogue::run, name).string());
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
  *cases = with_overrides(std::move(*cases), input.overrides);
  if (std::ranges::find(rows.header, "case") != rows.header.end()) rows.varied = {"case"};
  rows.count = cases->size();
  rows.case_of = [cases](std::size_t row) { return (*cases)[row]; };
  rows.cells_of = [cells](std::size_t row) { return (*cells)[row]; };
  return rows;
}

class Fingerprint {
 public:
  void add(std::string_view piece) {
    hash_ = (fnv_1a(piece, hash_) ^ piece.size()) * fnv_1a_prime;  // so that "ab", "c" differs from "a", "bc"
  }
  /// A value of a scenario, and where it names files (or a mapping in it does), their texts and what these name. Paths
  /// begin at `folder` or here.
  void add_value(const std::string& value, const std::string& folder);
  [[nodiscard]] std::uint64_t number() const { return hash_; }

 private:
  /// Every text in a document, as a value.
  void add_node(const YamlNode& node, const std::string& folder) {
    if (node.is_scalar()) add_value(node.scalar, folder);
    for (const YamlNode& item : node.items) add_node(item, folder);
    for (const YamlEntry& entry : node.entries) add_node(entry.value, folder);
  }

  std::uint64_t hash_ = fnv_1a_start;
  std::set<std::string> known_;  ///< values and files that were added
};

void Fingerprint::add_value(const std::string& value, const std::string& folder) {
  add(value);
  const bool is_mapping = value.find_first_of("{[") != std::string::npos;
  const bool may_name_files = value.find_first_of("/.") != std::string::npos;
  if (!may_name_files || !known_.insert(folder + '\n' + value).second) return;
  try {
    if (is_mapping) return add_node(parse_yaml(value, "value"), folder);
    std::error_code unseen;
    for (const std::filesystem::path& path : {folder / std::filesystem::path(value), std::filesystem::path(value)}) {
      if (!std::filesystem::is_regular_file(path, unseen)) continue;
      if (!known_.insert(path.string()).second) return;
      add(read_text_file(path));
      return add_node(cached_yaml_file(path.string()), path.parent_path().string());
    }
  } catch (const ScenarioError&) {
    // The prediction of the row reports the error.
  }
}

/// The program, by its size and date, and the texts of its catalogue.
void add_program(Fingerprint& fingerprint) {
  namespace fs = std::filesystem;
  const FileState program = look_at("/proc/self/exe");
  fingerprint.add(fmt::format("{} {}", program.size, program.modified));
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(data_directory())) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  for (const std::string& file : files) fingerprint.add(read_file(file, {}));
}

/// Adds the variations instead of all combinations, of which there may be ten million.
void add_variations(const SweepInput& input, Fingerprint& fingerprint) {
  fingerprint.add_value(input.file, "");
  for (const Variation& variation : parse_variations(input.variations)) {
    fingerprint.add(variation.key);
    for (std::size_t i = 0; i < variation.values.size(); ++i) {
      for (const std::string& value : variation.values_at(i)) fingerprint.add_value(value, "");
    }
  }
}

void add_rows(const SweepRows& rows, const SweepInput& input, Fingerprint& fingerprint) {
  const std::string folder = std::filesystem::path(input.table).parent_path().string();
  for (std::size_t row = 0; row < rows.count; ++row) {
    for (const std::string& cell : rows.cells_of(row)) fingerprint.add_value(cell, folder);
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
  add_program(fingerprint);
  fingerprint.add(name(fidelity));
  if (!input.anchor.empty()) fingerprint.add(read_text_file(input.anchor));
  for (const std::vector<std::string>& overrides : {input.settings, input.overrides}) {
    for (const std::string& text : overrides) {
      fingerprint.add(text);
      fingerprint.add_value(text.substr(text.find('=') + 1), "");
    }
  }
  for (const std::string& column : rows.header) fingerprint.add(column);
  input.table.empty() ? add_variations(input, fingerprint) : add_rows(rows, input, fingerprint);
  return fingerprint.number();
}

}  // namespace foretrain
