#include "reports/cli/calibrate_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "reports/cli/gpu_program.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/text_fit.hpp"
#include "validate/fit/gpu_fit.hpp"
#include "validate/host_calibration/detect.hpp"

namespace foretrain {

namespace {

constexpr int interrupted_status = 130;
constexpr std::size_t most_complaints = 5;

/// Runs the suites into a folder. False: interrupted, or not everything could be measured.
bool measure(const GpuCalibrateOptions& options, const std::string& folder) {
  std::vector<std::string> arguments = {"measure", "-o", folder};
  if (options.quick) arguments.emplace_back("--quick");
  if (!options.suites.empty()) {
    arguments.emplace_back("--only");
    arguments.push_back(fmt::format("{}", fmt::join(options.suites, ",")));
  }
  const int status = run_gpu_program(arguments);
  if (status == 2) throw UsageError("foretrain-gpu could not measure (its message stands above)");
  if (status == interrupted_status) {
    warn(fmt::format("interrupted; {} holds what was measured until now, and running again measures the rest", folder));
  } else if (status != 0) {
    warn(fmt::format("not everything could be measured: {} says what; the fit goes on with the rest", folder));
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

}  // namespace

Parts divide_parts(const std::vector<std::string>& only, const std::vector<std::string>& host_parts) {
  Parts parts;
  const auto is_suite = [](std::string_view name) {
    return std::find(gpu_suites.begin(), gpu_suites.end(), name) != gpu_suites.end();
  };
  for (const std::string& part : only) {
    if (std::find(host_parts.begin(), host_parts.end(), part) != host_parts.end()) {
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
      const auto nearest = nearest_word(part, known);
      throw UsageError(fmt::format("--only: there is no part {}; {}", part,
                                   nearest ? fmt::format("did you mean {}?", *nearest) : or_list(known, 20)));
    }
  }
  if (parts.gpu) parts.suites.clear();
  parts.gpu = parts.gpu || !parts.suites.empty();
  if (parts.gpu && !parts.host.empty()) {
    throw UsageError("--only: parts of the host and of the GPU are measured one after the other, by two commands");
  }
  return parts;
}

ExitStatus calibrate_gpu(const GpuCalibrateOptions& options) {
  const bool here = options.from.empty();
  const std::string folder = here ? options.output + ".measurements" : options.from;
  const bool complete = !here || measure(options, folder);
  const RawMeasurements raw = read_measurements(folder);
  const std::optional<YamlNode> cpu = own_cpu(here && !options.hardware.empty());
  const GpuCalibration fit = fit_gpu(raw, cpu ? &*cpu : nullptr);
  write_file(options.output, to_json(fit));
  if (!options.hardware.empty()) write_file(options.hardware, readable_yaml(fit.node));
  complain_about(fit.not_understood);
  print_page(to_text(fit));
  const bool met = std::all_of(fit.bars.begin(), fit.bars.end(),
                               [](const AccuracyBar& bar) { return bar.points == 0 || bar.met(); });
  return complete && (met || !options.check) ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace foretrain
