// Training logs: how long their steps took, and the arguments that trainers print before the first one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/import/importer.hpp"
#include "reports/import/settings.hpp"

namespace foretrain {

/// Meaning of a number in a log: the index of a step, or the speed of steps. A rate says a step's time in a scenario
/// alone. Of several, the first that a log has counts.
enum class LogQuantity {
  time,
  samples_per_second,
  tokens_per_second,
  tokens_per_second_per_gpu,
  steps_per_second,
  part_of_time,  ///< one of several that add up
  whole_time,    ///< of all steps
  memory,
  step,
  step_of_all  ///< "20/100"
};

enum class LogPause { none, evaluation, checkpoint };

/// One step, or the mean of those since the line before.
struct LoggedStep {
  double value = 0.0;  ///< of LoggedRun::quantity
  LogPause after = LogPause::none;
};

/// Steps of a log without those that say little of the training's speed.
struct LoggedRun {
  std::string file, format;
  LogQuantity quantity = LogQuantity::time;                 ///< time or a rate
  double median = 0.0;                                      ///< s or 1/s
  double slowest_tenth = 0.0;                               ///< P90 of times, P10 of rates
  double spread = 0.0;                                      ///< distance of the quartiles over the median
  std::size_t steps = 0;                                    ///< that count
  std::size_t warm_up = 0, evaluation = 0, checkpoint = 0;  ///< that do not
  double checkpoint_share = 0.0;  ///< of the median: what steps behind checkpoints add to the mean step
  std::optional<double> memory;   ///< reserved on the GPU of the log, at most, in bytes
  std::string scenario;           ///< of scenario_at_head(), where it is asked for

  /// "48 steps (2 warm-up left out), quartiles 1.2 % apart".
  [[nodiscard]] std::string text() const;
};

/// Reads the log by the format of which it has most steps (log_figures.def). Other lines are skipped. Throws
/// ScenarioError where no line has a step time.
LoggedRun read_training_log(const ImportInput& input);

/// The same of a profiler's trace whose steps are marked, or of a log.
LoggedRun read_log_or_trace(const ImportInput& input);

/// The scenario of the arguments that the log's framework printed at its head; "" where it printed none. Throws
/// ScenarioError as the importer of the framework's files.
std::string scenario_at_head(const ImportInput& input);

/// Whether the scenario that an importer wrote says that this key's value is assumed.
bool assumes(const std::string& scenario, std::string_view key);

/// "a.log and 2 more: the machine is assumed …" of those whose arguments do not name it; "" where there are none.
std::string assumed_machine(std::span<const LoggedRun> runs);

// Scenarios of these frameworks' settings, from any source. Throws ScenarioError.
std::string megatron_scenario(const ImportInput& input, Settings settings, const std::string& framework);
std::string torchtitan_scenario(const ImportInput& input, Settings settings);
/// Megatron-Bridge's name of a Megatron-LM argument; `inverse`: with true for false.
std::string nemo_key(std::string_view argument, bool& inverse);
/// The key as today's torchtitan calls it.
std::string torchtitan_name_of_today(std::string key);

/// A table of cases, a log a row, with each scenario's keys, or of `base` and the overrides. Throws ScenarioError where
/// a row cannot be predicted.
std::string log_table(std::span<const LoggedRun> runs, const std::string& base,
                      const std::vector<std::string>& overrides);

}  // namespace foretrain
