#include "reports/cli/gpu_replay.hpp"

#include <filesystem>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/process.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/gpu_program.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/measured_graph.hpp"
#include "sim/simulate.hpp"
#include "validate/export/export.hpp"
#include "validate/replay/graph_text.hpp"

namespace foretrain {

namespace {

[[noreturn]] void no_gpu(const std::string& name, const std::string& why) {
  throw UsageError("replay " + name + ": " + why + "; on a machine with a GPU validate/on_gpu.sh runs all, or take " +
                   "the task graph there: foretrain replay " + name + " --export " + name +
                   ".graph, then foretrain-gpu replay " + name + ".graph -o DIR there, and here foretrain replay " +
                   "--from DIR. Without a GPU only all-reduces between hosts run, with one rank per host");
}

}  // namespace

bool runs_on_gpus(const Scenario& scenario) { return scenario.cluster.nodes == 1; }

replay::Graph gpu_graph(const NamedScenario& scenario, Fidelity fidelity) {
  check_gpu_replay(scenario.scenario);
  const std::unique_ptr<Job> job = make_job(scenario.scenario, fidelity, Recipes::kept);
  const Execution execution = executor_of(*job, fidelity)(job->graph());
  return exported(scenario.scenario, replay::file_name_of(scenario.name), job->graph(), execution, fidelity);
}

void export_graphs(const std::vector<NamedScenario>& scenarios, Fidelity fidelity, const std::string& target) {
  const bool folder = std::filesystem::is_directory(target);
  if (scenarios.size() != 1 && !folder) {
    throw UsageError("replay --export " + target + ": several graphs need a folder that exists");
  }
  std::vector<std::pair<std::filesystem::path, std::string>> files;
  for (const NamedScenario& scenario : scenarios) {
    NamedScenario named = scenario;
    if (!folder) named.name = std::filesystem::path(target).stem().string();
    const replay::Graph graph = gpu_graph(named, fidelity);
    if (graph.name.empty()) throw UsageError("replay --export: \"" + named.name + "\" names no file");
    const std::filesystem::path path =
        folder ? std::filesystem::path(target) / (graph.name + ".graph") : std::filesystem::path(target);
    files.emplace_back(path, to_text(graph));
  }
  for (const auto& [path, text] : files) write_file(path, text);
}

bool run_on_gpus(const std::vector<NamedScenario>& scenarios, Fidelity fidelity, const std::string& folder) {
  const ScratchFolder scratch;
  const std::string& graphs = scratch.path();
  export_graphs(scenarios, fidelity, graphs);  // what cannot be replayed is said first
  const std::string& name = scenarios.front().name;
  const auto program = find_gpu_program();
  if (!program) no_gpu(name, "it runs on GPUs, and this build has no foretrain-gpu (no CUDA toolkit)");
  const std::string results = folder.empty() ? graphs : folder;
  std::vector<std::string> command = {program->string(), "replay"};
  for (const NamedScenario& scenario : scenarios) {
    command.push_back(graphs + "/" + replay::file_name_of(scenario.name) + ".graph");
  }
  command.insert(command.end(), {"-o", results});
  const FilterResult run = run_filter(command, "");
  if (run.status == ExitStatus::bad_input || run.status > 2) {
    std::string why = run.errors.substr(0, run.errors.find_last_not_of('\n') + 1);
    if (why.empty()) why = "foretrain-gpu ended with status " + std::to_string(run.status);
    no_gpu(name, why);
  }
  warn(run.errors);
  std::vector<MeasuredGraph> measured;
  measured.reserve(scenarios.size());
  for (const NamedScenario& scenario : scenarios) {
    measured.push_back(read_measured_graph(results + "/replay-" + replay::file_name_of(scenario.name) + ".json"));
  }
  print_page(measured_graphs_text(measured));
  return run.status == 0;
}

}  // namespace foretrain
