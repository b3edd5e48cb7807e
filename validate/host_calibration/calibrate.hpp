// Benchmarks of `foretrain calibrate` on this machine, one table row each, and their results.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/cluster.hpp"
#include "validate/host_replay/measurements.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

/// The parts into which the benchmarks are divided, in the order in which they run.
inline constexpr auto calibration_parts = std::to_array<std::string_view>({
#define PART(name) #name,
#include "validate/host_calibration/parts.def"
});

/// Number of samples kept per row.
inline constexpr std::size_t kept_samples = 200;

/// One measured quantity. The parameters are texts as a scenario would state them ("32 KiB", "random"), so that the
/// model can predict the row again later from the file alone.
struct BenchmarkRow {
  std::string benchmark;  ///< name of its row in the table of benchmarks
  std::map<std::string, std::string> parameters;
  double measured = 0.0;  ///< the median, in `unit`; meaningless when there is no sample
  std::string unit;       ///< base units: "s", "B/s", "FLOP/s", "1/s"
  double spread = 0.0;    ///< distance of the quartiles over the median
  int samples = 0;        ///< 0: not measured, `note` says why
  double best = 0.0;      ///< the fastest sample: the least disturbed one on a shared machine
  std::string note;
  std::optional<double> predicted = std::nullopt;
  std::vector<double> values = {};  ///< the samples in order; of more than kept_samples as many, evenly spread

  /// The measurement to compare with. For memory it is the best sample, since other programs only slow a walk down and
  /// the prediction is for an idle machine. For disks and loaders it is the median.
  [[nodiscard]] double reference() const;
  /// Predicted over reference(), less one.
  [[nodiscard]] std::optional<double> error() const;
};

struct CalibrationSettings {
  bool quick = false;
  std::string directory;  ///< folder of the measured disk
  Seconds budget;         ///< this benchmark's time
  Node node;              ///< this machine as detected
};

/// Takes a row as soon as it is measured, so that an interruption loses only the row that is being measured.
using RowSink = std::function<void(BenchmarkRow)>;

/// One benchmark. `measure` sends its rows to the sink and throws Interrupted when the user ends the work; a machine
/// that cannot run it sends one row without samples that says why. `predict` is the model's answer for one of these
/// rows, in the row's unit; nothing where it has none.
struct HostBenchmark {
  std::string_view part;  ///< of calibration_parts
  std::string_view name;
  std::string_view description;
  Seconds budget, quick_budget;
  double tolerance;  ///< share by which a prediction may miss; 0: reported only
  void (*measure)(const CalibrationSettings&, const RowSink&);
  std::optional<double> (*predict)(const BenchmarkRow&, const Node&);
};

#define PART(name) std::vector<HostBenchmark> name##_benchmarks();
#include "validate/host_calibration/parts.def"

const std::vector<HostBenchmark>& host_benchmarks();
/// Nothing for a name that no benchmark has.
const HostBenchmark* find_benchmark(std::string_view name);

struct CalibrationReport {
  HostMachine machine;
  bool quick = false;
  bool complete = false;  ///< false: interrupted, or still running
  std::string hardware;   ///< the node file that predictions depend on
  std::vector<BenchmarkRow> rows;
};

/// A row from what was sampled.
BenchmarkRow row_of(std::string_view benchmark, std::map<std::string, std::string> parameters, const Sampled& samples,
                    std::string_view unit);
/// A row that says why there is no measurement.
BenchmarkRow not_measured(std::string_view benchmark, std::map<std::string, std::string> parameters, std::string why);

/// Does `work`; where it throws anything but Interrupted, one row says why.
void attempt(std::string_view benchmark, const CalibrationSettings& settings, const RowSink& sink,
             const std::function<void()>& work);

/// Fills in `predicted` of every row whose benchmark can predict it.
void predict_rows(CalibrationReport& report, const Node& node);

std::string to_json(const CalibrationReport& report);
/// Throws ScenarioError naming the file when it holds no calibration of a machine.
CalibrationReport read_calibration_report(const std::string& path);

}  // namespace foretrain
