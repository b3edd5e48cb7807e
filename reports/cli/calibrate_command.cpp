#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/calibrate_gpu.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/gpu_program.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/calibration_table.hpp"
#include "reports/print/table.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/detect.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

struct CalibrateCommand {
  std::vector<std::string> parts;
  std::string directory = ".";
  std::string output, hardware, node, from;
  bool quick = false;
  bool check = false;
};

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
  return command.parts.empty() ||
         std::find(command.parts.begin(), command.parts.end(), benchmark.part) != command.parts.end();
}

/// Whether there is a complete calibration, which gives way to a complete one alone.
bool is_complete(const std::string& path) {
  try {
    return std::filesystem::is_regular_file(path) && read_calibration_report(path).complete;
  } catch (const ScenarioError&) {
    return false;
  }
}

/// What is measured is kept from part to part, unless an earlier calibration stands there until this one is complete.
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

/// Which of the description's figures came from measurements on a machine of the same kind: where a prediction rests on
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

/// The description's caches and vector units matter to these.
bool of_processor(std::string_view part) { return part == "memory" || part == "compute"; }

/// Where no row has a sample, why not.
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
  if (!parts.host.empty() || !command.node.empty()) return false;
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
  return calibrate_gpu({command.from, command.output, command.hardware, parts.suites, command.quick, command.check});
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
  const bool processor = !command.hardware.empty() || command.parts.empty() ||
                         std::any_of(command.parts.begin(), command.parts.end(), of_processor);
  report.hardware = command.node.empty() ? detect_hardware_file(processor) : read_text_file(command.node);
  const Node node = node_of_hardware_file(report.hardware);
  if (!command.hardware.empty()) write_file(command.hardware, report.hardware);
  report.machine = this_machine();
  report.devices.push_back({"cpu", "cpu", node.cpu.name});
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
  const bool rests_on_caches = std::any_of(report.rows.begin(), report.rows.end(), [](const BenchmarkRow& row) {
    const HostBenchmark* benchmark = find_benchmark(row.benchmark);
    return benchmark != nullptr && of_processor(benchmark->part) && row.samples > 0;
  });
  print_page(to_text(report) + (rests_on_caches ? fitted_note(node.cpu) : ""));
  if (!report.complete) return ExitStatus::prediction_failed;
  if (const auto why = nothing_measured(report)) {
    warn(fmt::format("nothing could be measured: {}", *why));
    return ExitStatus::prediction_failed;
  }
  const bool passed = !command.check || rows_beyond_tolerance(report).empty();
  return passed ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace

void add_calibrate(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<CalibrateCommand>();
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "measure this machine's GPU and fit the model to it; without one its memory, processor, disk, loading");
  command->add_option("-o,--output", options->output, "where every row is kept")
      ->type_name("CALIBRATION.json")
      ->required();
  command->add_flag("--quick", options->quick, "less than a minute instead of five, and less exact");
  command
      ->add_option("--only", options->parts,
                   "some parts only: memory, compute, disk, loader; gpu, or suites of it: gpu.gemm, gpu.memory, …")
      ->delimiter(',')
      ->type_name("PART,PART,…");
  command->add_option("--directory", options->directory, "measure the disk that holds this folder (default: here)")
      ->type_name("DIR");
  command->add_option("--hardware", options->hardware, "also write this machine as a hardware file, for cluster.node")
      ->type_name("NODE.yaml");
  command->add_option("--node", options->node, "predict from this hardware file instead of what is detected")
      ->type_name("NODE.yaml");
  command->add_option("--from", options->from, "fit what foretrain-gpu measured into this folder, here or elsewhere")
      ->type_name("DIR");
  command->add_flag("--check", options->check, "fail when a prediction misses by more than its tolerance");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain
