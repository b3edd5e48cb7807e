// Tables of text cells in the CSV of RFC 4180: commas, "…" around cells with commas, quotes or line ends, "" for a
// quote; and an apostrophe in front of text that spreadsheets would take for a formula ('=1+1).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/error.hpp"

namespace foretrain {

struct CsvCell {
  std::string text;
  SourcePosition where;  ///< of the cell's first character
};
using CsvRow = std::vector<CsvCell>;

struct CsvTable {
  CsvRow header;
  std::vector<CsvRow> rows;  ///< each as long as the header
};

/// Reads a table; blank lines are skipped. Throws ScenarioError (with position) for an empty text, an unclosed quote,
/// text behind a closing quote, and an empty or repeated column name. Throws it as well for a row with more or fewer
/// cells than the header, and for more than 10,000 columns or four million cells.
CsvTable parse_csv(std::string_view text, const std::string& file);

/// One line without line end, cells quoted where they must be.
std::string csv_line(const std::vector<std::string>& cells);

/// Cells of a row by their columns' names.
using NamedCells = std::vector<std::pair<std::string, std::string>>;
/// The header's line, and one for each row; a cell is empty where the row has none of the column.
std::string csv_text(const std::vector<std::string>& header, const std::vector<NamedCells>& rows);

}  // namespace foretrain
