// Rows of a sweep: the combinations of varied values, or the rows of a table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/load/cases.hpp"

namespace foretrain {

struct SweepInput {
  std::string file;   ///< the scenario to vary; empty: there is a table
  std::string table;  ///< of cases
  std::vector<std::string> variations, overrides;
  std::vector<std::string> settings;  ///< overrides of all rows that no column shows
  std::string anchor;                 ///< a table of measured runs
};

/// Rows are made when they are asked for: there may be a million.
struct SweepRows {
  std::vector<std::string> header;
  std::vector<std::string> varied;  ///< of the header: what tells rows apart
  std::size_t count = 0;
  std::function<Case(std::size_t row)> case_of;
  std::function<std::vector<std::string>(std::size_t row)> cells_of;  ///< as many as the header has
};

/// Throws UsageError and ScenarioError for what is wrong with all rows.
SweepRows sweep_rows(const SweepInput& input);

/// Rows on the same hardware after each other, and among these, rows of the same plan: they have most in common, and
/// workers remember what they have worked out.
void bring_together(std::vector<std::size_t>& numbers, const SweepRows& rows);

/// Of everything that decides a cell: the program, its catalogue, the files that are named, options and values.
std::uint64_t fingerprint_of(const SweepRows& rows, const SweepInput& input, Fidelity fidelity);

}  // namespace foretrain
