// Measured rows to give back: a table of cases without what tells whose they are.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace foretrain {

struct SharedRows {
  std::string table;  ///< CSV with the columns of scenarios/cases
  std::size_t rows = 0;
  std::map<std::string, int> removed;  ///< number of removed columns, keys, "case names"
};

/// Keeps measured values, numbers, words and names of the catalogue. Names of cases, sources, descriptions and paths
/// go; files of the user's (bases, nodes, models) become their values. Throws ScenarioError at a row that cannot be
/// read, then or afterwards.
SharedRows shared_rows(std::string_view text, const std::string& file);

/// Lists the cells of the table, and the removed ones.
std::string to_text(const SharedRows& shared);

}  // namespace foretrain
