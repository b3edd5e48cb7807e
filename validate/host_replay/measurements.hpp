// Measurements of replays, with everything that is needed to judge them later: machine, versions, every repetition.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/graph/execution.hpp"
#include "validate/host_replay/replay_plan.hpp"

namespace foretrain {

struct HostMachine {
  std::string processor;
  int cores = 0;
  Bytes memory;
  std::string kernel;
  std::string date;  ///< ISO 8601, day
};
HostMachine this_machine();
/// As an object of a JSON file, and back. Throws nlohmann::json::exception for another object.
nlohmann::ordered_json to_value(const HostMachine& machine);
HostMachine machine_from(const nlohmann::json& value);
/// A file of measurements, one entry of its lists a line: short to read, and differences show which run they are in.
std::string one_entry_a_line(const nlohmann::ordered_json& document);
/// Hands such a file to `take`. Throws ScenarioError where it is none of this kind, as `command` writes it, or where
/// `take` throws.
void read_measured(const std::string& path, const std::string& kind, const std::string& command,
                   const std::function<void(const nlohmann::json&)>& take);
/// "Intel Xeon Processor, 2 cores, Linux 6.1".
std::string describe(const HostMachine& machine);

/// The cores were so busy that they, and not the cards, may have set the time.
inline constexpr double busy_limit = 0.9;

/// A task of a step, as it was predicted to run and did.
struct HostTask {
  std::string stream, name, category;
  Seconds predicted_start, predicted_end, start, end;
};

/// A task as one rank ran it, medians of all repetitions.
struct RankTask {
  int rank = 0;
  std::string name, category;
  Bytes sent;  ///< by the rank, in a collective or message
  Seconds start, end;
};

struct HostMeasurement {
  std::string name;   ///< of the scenario or case
  std::string group;  ///< "" when it has none
  int ranks = 0;
  Bytes size;                   ///< sent by the rank that sends most, or added up
  std::string plan;             ///< hash of what was run: the same plan need not be measured again
  std::vector<double> samples;  ///< seconds, all repetitions after warm-up, in order; each the slowest process's
  double busy = 0.0;            ///< share of the cores' time that was not idle
  Seconds predicted;
  /// Bubble and exposed communication of the rank with the most work, for steps of collectives and messages.
  std::optional<Seconds> waiting, predicted_waiting;
  std::vector<HostTask> tasks;       ///< if they are kept
  std::vector<RankTask> rank_tasks;  ///< the same
  // Not in the file:
  bool trains = false;                       ///< as the scenario says
  std::optional<Execution> execution;        ///< of a step's graph
  std::vector<std::vector<TaskSpan>> spans;  ///< of each process

  [[nodiscard]] Seconds median() const;
  /// Distance of the quartiles over the median.
  [[nodiscard]] double spread() const;
  [[nodiscard]] double error() const { return predicted / median() - 1.0; }
};

struct HostMeasurements {
  HostMachine machine;
  std::vector<HostMeasurement> runs;
};

std::string to_json(const HostMeasurements& measurements);
/// Throws ScenarioError naming the file when it holds no measurements of hosts.
HostMeasurements read_host_measurements(const std::string& path);

/// A hash of rates, task and traffic, the same on every machine.
std::string plan_hash(const ReplayPlan& plan);

}  // namespace foretrain
