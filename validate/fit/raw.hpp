// Folders of raw measurements, as validate/on_gpu.sh leaves them: machine.json, one SUITE.jsonl per suite, the steps of
// PyTorch (steps.jsonl) and of replays (replay-*.json). Any subset of them is enough.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "validate/fit/machine.hpp"
#include "validate/measure/record.hpp"

namespace foretrain {

/// The suites of foretrain-gpu, each a file of records. Whatever else lies in a folder of measurements but what
/// follows is another reader's.
inline constexpr std::array<std::string_view, 11> gpu_suites = {"launch",      "memory",    "copy",      "gemm",
                                                                "convolution", "attention", "streaming", "peer",
                                                                "collective",  "devices",   "overlap"};

/// Training steps of PyTorch (validate/pytorch/train_steps.py), a file of records as well.
inline constexpr std::string_view step_suite = "steps";
/// Suite of the kernels of replayed steps: no file of records, but replay-*.json.
inline constexpr std::string_view replay_suite = "replay";

/// One measured point, and the line that it stands in.
struct RawPoint {
  Record record;
  SourcePosition where;

  [[nodiscard]] double median() const;
  /// Distance of the quartiles over the median.
  [[nodiscard]] double spread() const;
  /// Whether clocks were lowered by heat or for want of power: what it took is not what the machine takes.
  [[nodiscard]] bool throttled() const;
  /// Whether the board's power limited the clock while it ran; nothing where the record does not say.
  [[nodiscard]] std::optional<bool> power_limited() const;
  /// Points that no fit may see: `parameters.held_out`.
  [[nodiscard]] bool held_out() const;
  /// The scenario's key "workload.KEY"; empty where the record states none.
  [[nodiscard]] std::string workload(const std::string& key) const;
  /// Empty where the record has no such parameter.
  [[nodiscard]] std::string parameter(const std::string& key) const;
  /// The parameter as a number; 0 where there is none, or it is no finite number.
  [[nodiscard]] double number(const std::string& key) const;
};

/// Outcome of a suite, and the use of each measured point: one of the last five.
struct SuiteCount {
  int measured = 0, failed = 0, skipped = 0;
  int fitted = 0;    ///< constants are fitted to it
  int held_out = 0;  ///< predicted, to judge the fit
  int direct = 0;    ///< a figure or a constant is read off it
  int drawn = 0;     ///< unused: the model has no constant for it
  int left_out = 0;  ///< with a reason (GpuCalibration::not_understood)
};

struct RawMeasurements {
  Machine machine;
  std::vector<RawPoint> points;              ///< measured ones, by suite, in the order of their lines
  std::map<std::string, SuiteCount> suites;  ///< by name; what failed or was skipped counts here alone

  [[nodiscard]] std::vector<const RawPoint*> of_suite(const std::string& suite) const;
};

/// The points of one file of records. Of lines with the same name the last holds: a point that failed is tried again.
/// Throws ScenarioError with file and line for what is no record.
std::vector<RawPoint> read_records(std::string_view text, const std::string& file);

/// Reads the folder. Throws ScenarioError where it is none, has no machine.json or no records, or where a line is torn
/// or no record.
RawMeasurements read_measurements(const std::filesystem::path& folder);

/// Parts of one machine's measurements, in folders of their own. A point that two of them hold is that of the later
/// one. Throws as above, and where machine.json describes different machines.
RawMeasurements read_measurements(const std::vector<std::filesystem::path>& folders);

}  // namespace foretrain
