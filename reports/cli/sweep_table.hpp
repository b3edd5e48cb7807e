// A sweep's rows as they are written and shown: which of them, in which order.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "reports/cli/sweep_store.hpp"

namespace foretrain {

/// Names are those of columns, in whole ("predicted.step_time_s") or their last words ("step_time_s"); quantities count
/// in base units, whatever their unit.
struct Selection {
  std::string where = {};  ///< an expression of SQL; empty: every row
  std::string sort =
      {};               ///< a column or an expression, least first; "-" before it: greatest first. Empty: as asked for
  std::size_t top = 0;  ///< number of rows; 0: all
  bool skip_impossible = false;
};

/// --where, --sort, --top and --skip-impossible.
void add_selection(CLI::App& command, Selection& selection);

/// Throws UsageError where an expression of the selection is none; before the work, that is.
void check_selection(SweepStore& store, const Selection& selection);

/// Writes the selected rows: JSON lines where the name ends in .jsonl, else CSV. Throws UsageError.
void write_table(SweepStore& store, const Selection& selection, const std::string& path);

/// The first of the selected rows for people, the fastest first where the selection has no order of its own: what tells
/// them apart (columns `varied`) and what was predicted. Ends in a line end; empty where there are no rows.
std::string best_rows(SweepStore& store, const Selection& selection, const std::vector<std::string>& varied);

/// The reasons why rows of this kind have no prediction, each once with its number of rows and one of them.
std::vector<std::string> reasons(SweepStore& store, Reply::Kind kind);

}  // namespace foretrain
