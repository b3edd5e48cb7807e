#include <algorithm>

#include "model/base/error.hpp"
#include "model/memory/memory.hpp"
#include "model/parallelism/layout.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/scenario/load/load.hpp"
#include "model/workload/build.hpp"
#include "reports/cli/shared_reports.hpp"

namespace foretrain {

MemoryReport memory_report(const std::string& file, const std::vector<std::string>& overrides) {
  const Scenario scenario = planned_file(file, overrides, Fidelity::flows);
  std::ranges::for_each(scenario.assumed, warn);
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr) {
    throw ScenarioError(position_of(scenario, "workload"), "workload", "nothing that is trained",
                        "workload: { train: … }");
  }
  const Model model = build_model(train->model, build_options(*train, scenario.plan));
  MemoryReport report;
  report.scenario = scenario.name;
  report.gpu = scenario.cluster.node.gpu.name;
  report.footprint = memory_footprint(scenario, *train, model);
  report.timeline = memory_timeline(scenario, *train, model);
  int position = 0;
  for (const auto& [layer, repeat] : model.layers) {
    const bool is_block = layer.name.ends_with("block") || layer.name.ends_with("layer");
    for (int i = 0; i < repeat && position <= report.timeline.moments[report.timeline.peak].layer; ++i, ++position) {
      report.block = is_block ? report.block + 1 : 0;
    }
  }
  report.micro_batch = train->micro_batch;
  report.stages = scenario.plan.pipeline;
  report.largest_micro_batch = largest_micro_batch(scenario, *train);
  report.largest_of_batch = report.largest_micro_batch;
  while (report.largest_of_batch > 1 && train->global_batch % (report.largest_of_batch * scenario.plan.data) != 0) {
    --report.largest_of_batch;
  }
  report.remedies = remedies_for_memory(scenario, *train);
  return report;
}

namespace {

struct MemoryOptions {
  std::string file;
  std::vector<std::string> overrides;
  bool json = false;
};

ExitStatus run(const MemoryOptions& options) {
  const MemoryReport report = memory_report(options.file, options.overrides);
  options.json ? print(to_json(report) + "\n") : print_page(to_text(report));
  return ExitStatus::success;
}

}  // namespace

void add_memory(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<MemoryOptions>(
      app, "memory", "Show the peak GPU memory by part and phase, the largest micro-batch, and remedies", status, run);
  command.add_option("FILE", options.file, "a scenario that trains a model")->required();
  add_overrides(command, options.overrides);
  add_headroom(command, options.overrides);
  command.add_flag("--json", options.json, "print JSON, with memory at every moment of the step");
}

ExitStatus plot_memory(const PlotOptions& options) {
  return draw(options, to_figure(memory_report(options.file(), options.overrides)));
}

}  // namespace foretrain
