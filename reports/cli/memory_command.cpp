#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/parallelism/layout.hpp"
#include "model/memory/memory.hpp"
#include "model/memory/memory_remedies.hpp"
#include "model/scenario/checks.hpp"
#include "model/scenario/load.hpp"
#include "model/workload/build.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plots.hpp"
#include "reports/memory_report.hpp"

namespace foretrain {

namespace {

struct MemoryOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string output;
  bool json = false;
};

MemoryReport memory_report(const MemoryOptions& options) {
  const Scenario scenario = load_scenario(options.file, options.overrides);
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
  report.micro_batch = train->micro_batch;
  report.largest_micro_batch = largest_micro_batch(scenario, *train);
  report.remedies = remedies_for_memory(scenario, *train);
  return report;
}

ExitStatus run_memory(const MemoryOptions& options) {
  const MemoryReport report = memory_report(options);
  print(options.json ? to_json(report) + "\n" : to_text(report));
  return ExitStatus::success;
}

ExitStatus run_plot(const MemoryOptions& options) {
  const MemoryReport report = memory_report(options);
  write_file(options.output, memory_svg(report));
  return ExitStatus::success;
}

}  // namespace

void add_memory(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<MemoryOptions>();
  CLI::App* command = app.add_subcommand(
      "memory", "a GPU's memory over the step: its peak and what makes it, the largest micro-batch, remedies");
  command->add_option("FILE", options->file, "a scenario that trains a model")->required();
  add_overrides(*command, options->overrides);
  command->add_flag("--json", options->json, "JSON for programs, with every moment of the step");
  command->callback([options, &status] { status = run_memory(*options); });
}

void add_plot_memory(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<MemoryOptions>();
  CLI::App* command =
      plot.add_subcommand("memory-timeline", "what fills the fullest GPU's memory, layer by layer through the step");
  command->add_option("FILE", options->file, "a scenario that trains a model")->required();
  command->add_option("-o,--output", options->output, "where the picture goes")->type_name("OUT.svg")->required();
  add_overrides(*command, options->overrides);
  command->callback([options, &status] { status = run_plot(*options); });
}

}  // namespace foretrain
