#include "reports/cli/gpu_replay.hpp"

#include <filesystem>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "sim/executor.hpp"
#include "validate/export/export.hpp"
#include "validate/replay/graph_text.hpp"

namespace foretrain {

bool runs_on_gpus(const Scenario& scenario) { return scenario.cluster.nodes == 1; }

replay::Graph gpu_graph(const NamedScenario& scenario, Fidelity fidelity) {
  check_gpu_replay(scenario.scenario);
  const PreparedScenario prepared(scenario.scenario, Recipes::kept);
  const TaskGraph graph = replay_graph(scenario.scenario, prepared);
  const Execution execution =
      fidelity == Fidelity::estimate ? execute_isolated(graph) : simulate(graph, prepared.topology(), fidelity, {});
  return exported(scenario.scenario, replay::file_name_of(scenario.name), graph, execution, fidelity);
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

}  // namespace foretrain
