// The part of `foretrain replay` that concerns GPUs: scenarios become task graphs that foretrain-gpu runs.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"
#include "validate/replay/graph.hpp"

namespace foretrain {

/// A scenario and what its files are called after.
struct NamedScenario {
  std::string name;
  Scenario scenario;
};

/// Whether a scenario is replayed on the GPUs of one machine; others run on hosts made of this one.
bool runs_on_gpus(const Scenario& scenario);

/// Runs scenarios on the GPUs of this machine, by the program foretrain-gpu beside this one, and prints predictions
/// beside measurements. `folder` keeps what was measured; empty: it is not kept. False when one of them could not be
/// run. Throws UsageError, saying what to do, where there is no GPU or no such program.
bool run_on_gpus(const std::vector<NamedScenario>& scenarios, Fidelity fidelity, const std::string& folder);

/// A scenario's task graph with its prediction. Throws ScenarioError for what cannot be replayed.
replay::Graph gpu_graph(const NamedScenario& scenario, Fidelity fidelity);

/// Writes the graphs: one into a file, any number into a folder that exists, as NAME.graph. All of them are made before
/// the first is written. Throws UsageError for several graphs and one file.
void export_graphs(const std::vector<NamedScenario>& scenarios, Fidelity fidelity, const std::string& target);

}  // namespace foretrain
