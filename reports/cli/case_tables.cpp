#include "reports/cli/case_tables.hpp"

#include <algorithm>
#include <filesystem>

#include "model/base/error.hpp"
#include "model/scenario/catalogue.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/measured.hpp"

namespace foretrain {

std::vector<std::string> shipped_tables() {
  std::vector<std::string> tables;
  for (const auto& entry : std::filesystem::directory_iterator(data_directory() / "cases")) {
    if (entry.path().extension() == ".csv") tables.push_back(entry.path().string());
  }
  std::sort(tables.begin(), tables.end());
  return tables;
}

std::vector<Case> read_tables(const std::vector<std::string>& tables) {
  std::vector<Case> cases;
  for (const std::string& table : tables) {
    for (Case& row : read_cases(table)) {
      if (row.unreadable) throw ScenarioError(*row.unreadable);
      if (row.group.empty()) row.group = std::filesystem::path(table).stem().string();
      cases.push_back(std::move(row));
    }
  }
  return cases;
}

std::string cell_of(const Case& row, const std::string& column) {
  constexpr std::string_view prefix = "replay.";
  if (column == "group") return row.group;
  if (column.starts_with(prefix)) {
    const auto cell = row.replay.find(column.substr(prefix.size()));
    return cell == row.replay.end() ? "" : cell->second;
  }
  const auto cell = std::ranges::find(row.overrides, column, &Override::key);
  return cell == row.overrides.end() ? "" : cell->value;
}

void add_conditions(CLI::App& command, std::vector<std::string>& conditions) {
  add_repeatable(command, "--where", conditions, "only rows with these values (repeatable)", "COLUMN=VALUE[|VALUE]");
}

bool wanted(const Case& row, const std::vector<std::string>& conditions) {
  return std::ranges::all_of(conditions, [&row](const std::string& condition) {
    const std::size_t equals = condition.find('=');
    if (equals == std::string::npos) {
      throw UsageError("--where " + condition + ": write COLUMN=VALUE, or COLUMN=VALUE|VALUE");
    }
    const std::string cell = cell_of(row, condition.substr(0, equals));
    const std::string values = "|" + condition.substr(equals + 1) + "|";
    return values.find("|" + cell + "|") != std::string::npos;
  });
}

std::vector<Comparison> compare_case(const Case& row, const Outcome& outcome, std::vector<FailedCase>& failed) {
  try {
    if (outcome.result) return compare(row, *outcome.result);
    failed.push_back({row.name, outcome.error});
  } catch (const UsageError& error) {
    failed.push_back({row.name, error.what()});
  }
  return {};
}

}  // namespace foretrain
