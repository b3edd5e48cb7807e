// Tables of cases: one scenario per row, beside what was measured.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "model/scenario/overrides.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Quantity of a `measured.*` column, by the word behind the dot.
enum class MeasuredQuantity {
  step_time,
  samples_per_second,
  tokens_per_second,
  tokens_per_second_per_gpu,
  time,
  bus_bandwidth,
  memory_per_gpu,
  time_to_train
};

struct Measurement {
  MeasuredQuantity quantity = MeasuredQuantity::step_time;
  double value = 0.0;  ///< in base units: s, 1/s, B/s, B
  SourcePosition where;
};

struct Case {
  std::string name;
  std::string group;   ///< "" when the table has none
  std::string anchor;  ///< measured steps of rows with the same name say how fast this one's machine is
  std::string source;  ///< where the measurement was published
  std::string base;    ///< scenario file or catalogue name, "" for none
  SourcePosition base_where;
  std::shared_ptr<const ScenarioError> unknown_base;  ///< of the first row that names it
  std::vector<Override> overrides;                    ///< the cells that say something
  std::vector<Measurement> measured;
  std::optional<ScenarioError> unreadable;    ///< what was measured, first of what cannot be read
  std::map<std::string, std::string> replay;  ///< replay.* columns: how a replay is to run the case, and how it went
  SourcePosition where;                       ///< where the row stands
};

/// Reads a CSV table: a file, or the name of a table that comes with the program. Columns are case, group, anchor,
/// source, base, dotted scenario keys, measured.*, replay.* and predicted.* (which sweeps write, and which are
/// skipped). Names of cases may repeat. Throws ScenarioError with file:line:column of the header's cell; what is wrong
/// with a row is reported where its document is asked for.
std::vector<Case> read_cases(const std::filesystem::path& path);
std::vector<Case> read_cases_text(std::string_view text, const std::string& file_name);

/// The document of the case's scenario: its base with the cells put in. Throws ScenarioError, also for a measurement
/// that cannot be read: such a row is out of use, not its table.
YamlNode document_of(const Case& row);

/// The case's scenario: its base with the cells put in. Throws ScenarioError, at the cell where it is to blame.
Scenario scenario_of(const Case& row);

}  // namespace foretrain
