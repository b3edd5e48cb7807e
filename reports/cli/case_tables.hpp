// Tables of cases as commands name them: several at once, those that come with the program, and which of their rows.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "model/scenario/load/cases.hpp"
#include "reports/cli/workers.hpp"
#include "reports/measured/accuracy.hpp"

namespace foretrain {

/// The tables that come with the program.
std::vector<std::string> shipped_tables();

/// The rows of all these tables; a row without a group has its table's name. Throws ScenarioError where a cell cannot
/// be read.
std::vector<Case> read_tables(const std::vector<std::string>& tables);

/// The row's value in a column: group, replay.* or a key of its scenario; nothing where the cell is empty.
std::string cell_of(const Case& row, const std::string& column);

/// --where COLUMN=VALUE|…, any number of times.
void add_conditions(CLI::App& command, std::vector<std::string>& conditions);

/// Whether each condition holds. Throws UsageError for one that is none.
bool wanted(const Case& row, const std::vector<std::string>& conditions);

/// The comparisons of a case; into `failed` why there are none.
std::vector<Comparison> compare_case(const Case& row, const Outcome& outcome, std::vector<FailedCase>& failed);

}  // namespace foretrain
