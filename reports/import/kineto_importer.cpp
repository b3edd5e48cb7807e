// A trace of PyTorch's profiler (Kineto: chrome trace events) as a report: a step's kernels by kind, beside what a
// scenario predicts.
#include <fmt/format.h>

#include <optional>

#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/kineto_trace.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

std::string relative_error(Seconds predicted, Seconds measured) {
  return measured > Seconds(0.0) ? signed_percent(predicted / measured - 1.0) : "";
}

std::string report_on(const KinetoSummary& trace, const std::optional<PredictedStep>& predicted) {
  std::vector<std::string> header = {"", trace.on_device ? "kernels" : "operators", "measured"};
  if (predicted) header.insert(header.end(), {"predicted", "error"});
  TextTable table(predicted ? "lrrrr" : "lrr", header);
  const auto add = [&](const std::string& what, const std::string& count, Seconds measured, Seconds other) {
    std::vector<std::string> row = {what, count, format_seconds(measured)};
    if (predicted) row.insert(row.end(), {format_seconds(other), relative_error(other, measured)});
    table.add_row(std::move(row));
  };
  for (std::size_t i = 0; i < names_of<KernelKind>.size(); ++i) {
    const auto kind = static_cast<KernelKind>(i);
    const auto found = trace.kernels.find(kind);
    const TracedKernels kernels = found == trace.kernels.end() ? TracedKernels() : found->second;
    Seconds other;
    if (predicted && predicted->kernels.contains(kind)) other = predicted->kernels.at(kind).time;
    if (kernels.count == 0.0 && other == Seconds(0.0)) continue;
    add(std::string(name(kind)), fmt::format("{:.4g}", kernels.count), kernels.time, other);
  }
  table.add_rule();
  const Seconds step = predicted ? predicted->result.time() : Seconds(0.0);
  if (trace.on_device) {
    const Seconds exposed = predicted ? predicted->result.train()->breakdown.exposed_communication : Seconds(0.0);
    add("exposed communication", "", trace.exposed_communication, exposed);
    table.add_row({"nothing runs on the device", "", format_seconds(trace.idle)});
  }
  add("step", "", trace.step, step);
  return table.text(page_indent);
}

}  // namespace

std::string import_kineto(const ImportInput& input) {
  const KinetoSummary trace = summarise_kineto(input.text, input.file);
  std::optional<PredictedStep> predicted;
  if (!input.scenario.empty()) {
    predicted = predicted_kernels(load_scenario(input.scenario, input.overrides), input.fidelity);
  }
  std::string text = fmt::format("{}\n", input.file);
  if (predicted) text += fmt::format("against the prediction of {}\n", predicted->scenario);
  text += trace.steps_marked ? fmt::format("  a step, the mean of {}\n\n", trace.steps)
                             : "  no steps are marked (ProfilerStep): all of it is taken to be one\n\n";
  text += report_on(trace, predicted);
  if (trace.devices > 1) text += fmt::format("\n  {} devices ran kernels; this is the first\n", trace.devices);
  if (!trace.on_device) text += "\n  operators of the processor, each without those that it calls\n";
  return text;
}

}  // namespace foretrain
