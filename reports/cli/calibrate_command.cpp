#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/format.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/gpu_program.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot.hpp"
#include "reports/measured/text_fit.hpp"
#include "reports/print/table.hpp"
#include "validate/fit/gpu_fit.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/detect.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

struct CalibrateCommand {
  std::vector<std::string> parts;  ///< empty: all
  std::vector<std::string> from;   ///< earlier measurements, in folders or packed; empty: measure now
  std::string directory = ".";
  std::string output, hardware;
  bool quick = false;
};

/// Which parts of `--only` are the GPU's: "gpu", "gpu.SUITE", or a suite that shares its name with no part of the host.
/// Throws UsageError for what is neither these nor in `host_parts`.
struct Parts {
  std::vector<std::string> host;
  std::vector<std::string> suites;
  bool gpu = false;
};

constexpr int interrupted_status = 130;
constexpr std::size_t most_complaints = 5;

/// Runs the suites into a folder. False: interrupted, or not everything could be measured.
bool measure(const CalibrateCommand& command, const std::vector<std::string>& suites, const std::string& folder) {
  std::vector<std::string> arguments = {"measure", "-o", folder};
  if (command.quick) arguments.emplace_back("--quick");
  if (!suites.empty()) arguments.insert(arguments.end(), {"--only", fmt::format("{}", fmt::join(suites, ","))});
  const int status = run_gpu_program(arguments);
  if (status == 2) throw UsageError("foretrain-gpu could not measure (see its message above)");
  if (status == interrupted_status) {
    warn(fmt::format("interrupted; {} holds the measurements so far, and the same command measures the rest", folder));
  } else if (status != 0) {
    warn(fmt::format("some measurements failed, see {}; the fit uses the rest", folder));
  }
  return status == 0;
}

/// This machine's own processor, for a hardware file of it.
std::optional<YamlNode> own_cpu(bool wanted) {
  if (!wanted) return std::nullopt;
  const YamlNode document = parse_yaml(detect_hardware_file(), "detected");
  const YamlEntry* cpu = document.find("cpu");
  return cpu == nullptr ? std::nullopt : std::optional<YamlNode>(cpu->value);
}

void complain_about(const std::vector<std::string>& not_understood) {
  for (std::size_t i = 0; i < std::min(most_complaints, not_understood.size()); ++i) warn(not_understood[i]);
  if (not_understood.size() > most_complaints) {
    warn(
        fmt::format("{} more records state what this version cannot predict", not_understood.size() - most_complaints));
  }
}

Parts divide_parts(const std::vector<std::string>& only, const std::vector<std::string>& host_parts) {
  Parts parts;
  const auto is_suite = [](std::string_view name) { return std::ranges::find(gpu_suites, name) != gpu_suites.end(); };
  for (const std::string& part : only) {
    if (std::ranges::find(host_parts, part) != host_parts.end()) {
      parts.host.push_back(part);
    } else if (part == "gpu") {
      parts.gpu = true;
    } else if (part.starts_with("gpu.") && is_suite(part.substr(4))) {
      parts.suites.push_back(part.substr(4));
    } else if (is_suite(part)) {
      parts.suites.push_back(part);
    } else {
      std::vector<std::string> known = host_parts;
      known.emplace_back("gpu");
      for (const std::string_view suite : gpu_suites) known.push_back("gpu." + std::string(suite));
      throw UsageError(fmt::format("--only: there is no part {}; {}", part,
                                   did_you_mean(nearest_word(part, known), or_list(known, 20))));
    }
  }
  if (parts.gpu) parts.suites.clear();
  parts.gpu = parts.gpu || !parts.suites.empty();
  if (parts.gpu && !parts.host.empty()) {
    throw UsageError("--only: parts of the host and of the GPU are measured one after the other, by two commands");
  }
  return parts;
}

/// The folder of one part of the measurements: a packed one (tar) is unpacked into `scratch`.
std::filesystem::path folder_of(const std::string& from, const std::filesystem::path& scratch) {
  if (!std::filesystem::is_regular_file(from)) return from;
  std::filesystem::create_directories(scratch);
  const FilterResult unpacked = run_filter({"tar", "-xf", from, "-C", scratch.string()}, "");
  if (unpacked.status == 0) return scratch;
  throw UsageError(fmt::format("--from: {} cannot be unpacked; a folder, or a file that validate/on_gpu.sh packed: {}",
                               from, unpacked.errors));
}

/// Measures (unless measurements are given), fits, writes, and prints what came of it.
ExitStatus calibrate_gpu(const CalibrateCommand& command, const std::vector<std::string>& suites) {
  const bool here = command.from.empty();
  const std::string own = command.output + ".measurements";
  const bool complete = !here || measure(command, suites, own);
  const ScratchFolder scratch;
  std::vector<std::filesystem::path> folders;
  for (const std::string& from : here ? std::vector{own} : command.from) {
    folders.push_back(folder_of(from, std::filesystem::path(scratch.path()) / fmt::format("{}", folders.size())));
  }
  const RawMeasurements raw = read_measurements(folders);
  const std::optional<YamlNode> cpu = own_cpu(here && !command.hardware.empty());
  const GpuCalibration fit = fit_gpu(raw, cpu ? &*cpu : nullptr);
  write_file(command.output, to_json(fit));
  if (!command.hardware.empty()) write_file(command.hardware, fit.node);
  complain_about(fit.not_understood);
  print_page(to_text(fit));
  return complete ? ExitStatus::success : ExitStatus::prediction_failed;
}

/// Minutes of measuring must not end at a folder that cannot be written.
void require_writable(const std::string& path, const char* option) {
  const std::filesystem::path folder =
      std::filesystem::is_directory(path) ? std::filesystem::path(path) : std::filesystem::path(path).parent_path();
  const std::string name = folder.empty() ? "." : folder.string();
  if (access(name.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("{}: {} is no folder that can be written; name another", option, name));
  }
}

bool wanted(const CalibrateCommand& command, const HostBenchmark& benchmark) {
  return command.parts.empty() || std::ranges::find(command.parts, benchmark.part) != command.parts.end();
}

/// Whether there is a complete calibration, which gives way to a complete one alone.
bool is_complete(const std::string& path) {
  try {
    return std::filesystem::is_regular_file(path) && read_calibration_report(path).complete;
  } catch (const ScenarioError&) {
    return false;
  }
}

/// Keeps measurements from part to part, unless an earlier calibration stays there until this one is complete.
void measure_all(const CalibrateCommand& command, const Node& node, bool keeps_earlier, CalibrationReport& report) {
  const double start = now();
  for (const HostBenchmark& benchmark : host_benchmarks()) {
    if (!wanted(command, benchmark)) continue;
    fmt::print(stderr, "{:5.0f} s  {}: {}\n", now() - start, benchmark.part, benchmark.description);
    const CalibrationSettings settings{command.quick, command.directory,
                                       command.quick ? benchmark.quick_budget : benchmark.budget, node};
    benchmark.measure(settings, [&](BenchmarkRow row) { report.rows.push_back(std::move(row)); });
    if (!keeps_earlier) write_file(command.output, to_json(report));
  }
  fmt::print(stderr, "{:5.0f} s  done\n", now() - start);
}

/// Which of the description's figures came from measurements on a machine of the same kind: where predictions use
/// one of them, it agreeing is no test.
std::string fitted_note(const Cpu& cpu) {
  std::string names;
  for (const Constant& constant : cpu.hierarchy_constants) {
    if (constant.kind != ConstantKind::fit && constant.kind != ConstantKind::measurement) continue;
    const std::size_t dot = constant.name.find('.');
    names += (names.empty() ? "" : ", ") + constant.name.substr(dot + 1);
  }
  if (names.empty()) return "";
  return wrap(
             "Measured or fitted on processors of this kind, so that rows which rest on them test consistency alone: " +
                 names + ".",
             96, 0) +
         "\n";
}

bool of_processor(std::string_view part) { return part == "memory"; }

std::optional<std::string> nothing_measured(const CalibrationReport& report) {
  std::string why;
  for (const BenchmarkRow& row : report.rows) {
    if (row.samples > 0) return std::nullopt;
    if (why.empty()) why = row.note;
  }
  return why.empty() ? "no benchmark had anything to measure" : why;
}

bool on_gpu(const CalibrateCommand& command, const Parts& parts) {
  if (!command.from.empty() || parts.gpu) return true;
  if (!parts.host.empty()) return false;
  const GpuPresence gpu = probe_gpu();
  if (!gpu.present) warn(fmt::format("no GPU is measured ({}); this machine's host is", gpu.why));
  return gpu.present;
}

ExitStatus run_gpu(const CalibrateCommand& command, const Parts& parts) {
  if (!command.from.empty() && !command.parts.empty())
    throw UsageError("--from: --only chooses what is measured, and nothing is measured now");
  if (command.from.empty()) {
    const GpuPresence gpu = probe_gpu();
    if (!gpu.present) {
      throw UsageError(
          fmt::format("no GPU can be measured here: {}. Measure on a machine with one (foretrain-gpu "
                      "measure -o DIR) and fit here with --from DIR",
                      gpu.why));
    }
  }
  return calibrate_gpu(command, parts.suites);
}

ExitStatus run(const CalibrateCommand& command) {
  const Parts parts = divide_parts(command.parts, {calibration_parts.begin(), calibration_parts.end()});
  require_writable(command.output, "--output");
  if (!command.hardware.empty()) require_writable(command.hardware, "--hardware");
  if (on_gpu(command, parts)) return run_gpu(command, parts);
  if (!std::filesystem::is_directory(command.directory)) {
    throw UsageError(fmt::format("--directory: {} is no folder", command.directory));
  }
  catch_signals();
  CalibrationReport report;
  const bool processor =
      !command.hardware.empty() || command.parts.empty() || std::ranges::any_of(command.parts, of_processor);
  report.hardware = detect_hardware_file(processor);
  const Node node = node_of_hardware_file(report.hardware);
  if (!command.hardware.empty()) write_file(command.hardware, report.hardware);
  report.machine = this_machine();
  report.quick = command.quick;
  const bool keeps_earlier = is_complete(command.output);
  try {
    measure_all(command, node, keeps_earlier, report);
    report.complete = true;
  } catch (const Interrupted&) {
    warn(fmt::format("interrupted; {} holds what was measured {}", command.output,
                     keeps_earlier ? "before" : "until now"));
  }
  predict_rows(report, node);
  if (report.complete || !keeps_earlier) write_file(command.output, to_json(report));
  const bool rests_on_caches = std::ranges::any_of(report.rows, [](const BenchmarkRow& row) {
    const HostBenchmark* benchmark = find_benchmark(row.benchmark);
    return benchmark != nullptr && of_processor(benchmark->part) && row.samples > 0;
  });
  print_page(to_text(report) + (rests_on_caches ? fitted_note(node.cpu) : ""));
  if (!report.complete) return ExitStatus::prediction_failed;
  if (const auto why = nothing_measured(report)) {
    warn(fmt::format("nothing could be measured: {}", *why));
    return ExitStatus::prediction_failed;
  }
  return ExitStatus::success;
}

/// Latency by working set: the prediction as a line, what was measured as points, the caches' sizes as marks.
/// Predicted anew from the description in the file: the model may have become better since it was written.
Figure latency_figure(CalibrationReport report) {
  const Node node = node_of_hardware_file(report.hardware);
  predict_rows(report, node);
  CaseFigure cases{"working set", "time of one dependent load"};
  for (const BenchmarkRow& row : report.rows) {
    if (row.benchmark != "memory_latency_curve" || row.samples == 0 || !row.predicted) continue;
    const Bytes size = parse_quantity<Bytes>(row.parameters.at("working_set"));
    add_point(cases, describe(report.machine), "load",
              {size.value(), format_binary_bytes(size), Seconds(*row.predicted), Seconds(row.reference())});
  }
  Figure figure = to_figure(cases);
  for (Panel& panel : figure.panels) {
    panel.width = 660;
    if (!node.cpu.hierarchy) continue;
    for (const CacheLevel& cache : node.cpu.hierarchy->caches) {
      panel.levels.push_back({.at = cache.size.value(), .name = cache.name, .vertical = true});
    }
  }
  return figure;
}

}  // namespace

void add_calibrate(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<CalibrateCommand>(
      app, "calibrate", "Measure this machine and fit the model constants: its GPU, or memory, disk and data loading",
      status, run);
  add_text(command, "-o,--output", options.output, "CALIBRATION.json", "write all measurements and constants")
      ->required();
  command.add_flag("--quick", options.quick, "measure for less than a minute instead of five, with larger errors");
  command
      .add_option("--only", options.parts,
                  "measure only these: memory, disk, loader; gpu, or its suites gpu.gemm, gpu.memory, …")
      ->delimiter(',')
      ->type_name("PART[,PART]");
  add_text(command, "--directory", options.directory, "DIR",
           "measure the disk of this folder (default: current folder)");
  add_text(command, "--hardware", options.hardware, "NODE.yaml",
           "also write this machine as a node file, for cluster.node");
  add_text(command, "--from", options.from, "DIR|PART.tar",
           "fit measurements of validate/on_gpu.sh: its folder, or its archives");
}

ExitStatus plot_latency(const PlotOptions& options) {
  const Figure figure = latency_figure(read_calibration_report(options.file()));
  if (!figure.panels.empty()) return draw(options, figure);
  throw UsageError("plot latency: " + options.file() + " has no rows of memory_latency_curve");
}

}  // namespace foretrain
