// foretrain-gpu replay: every graph in a process of its own, so that what goes wrong on the GPU ends with it.
#include <cstdio>
#include <filesystem>
#include <set>

#include "model/base/error.hpp"
#include "validate/cuda/child_process.hpp"
#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/timing.hpp"
#include "validate/cuda/math/operator_spec.hpp"
#include "validate/cuda/probe.hpp"
#include "validate/cuda/replay/replay.hpp"
#include "validate/measure/json_object.hpp"
#include "validate/measure/signals.hpp"
#include "validate/replay/graph_text.hpp"

namespace foretrain::gpu {

namespace {

/// The graph as this machine's GPU can run it: fp16 in place of bf16 before Ampere.
replay::Graph graph_for(replay::Graph graph, int capability) {
  for (replay::Block& block : graph.blocks) {
    for (Work& work : block.work) {
      auto* kernel = std::get_if<KernelWork>(&work);
      if (kernel != nullptr) kernel->fields = with_precision_of({kernel->kind, kernel->fields}, capability).fields;
    }
  }
  return graph;
}

/// Whether the file holds this graph's replay already, by this machine.
bool is_done(const std::string& path, const replay::Graph& graph, const Machine& machine) {
  const std::string text = file_text(path);
  const std::string mark = R"("identity":")" + replay::identity_of(graph) + '"';
  return text.find(R"("status":"measured")") != std::string::npos && text.find(mark) != std::string::npos &&
         text.find(json_text_field(machine.json, "identity")) != std::string::npos;
}

/// The work of a child: one graph. What it cannot do is in the file, and the exit status.
int run_one(const replay::Graph& stated, const std::string& path, bool quick, const Machine& machine) {
  const replay::Graph graph = graph_for(stated, machine.capability);
  catch_signals();
  const Nvml nvml;
  if (graph.gpus == 1) bind_to_node_of(bus_id_of(0));
  warm_clocks(Seconds(quick ? 0.3 : 1.0));
  try {
    replay::Result result = run_replay(graph, quick, nvml);
    if (graph != stated) {
      result.notes.emplace_back("fp16 in place of bf16: predict it with --set workload.train.precision=fp16");
    }
    replace_file(path, to_json(graph, result, machine.json));
    return exit_status::done;
  } catch (const GpuError& error) {
    const bool skipped = error.fault() == Fault::unsupported || error.fault() == Fault::out_of_memory;
    replace_file(path, to_json(graph, skipped ? "skipped" : "failed", error.what(), machine.json));
    throw;
  }
}

/// Every file is read before the first is run. Throws UsageError where two have one name.
std::vector<replay::Graph> graphs_in(const std::vector<std::string>& files) {
  if (files.empty()) {
    throw UsageError("replay: name graphs, as validate/cuda/graphs/*.graph; foretrain replay --export writes others");
  }
  std::vector<replay::Graph> graphs;
  std::set<std::string> names;
  for (const std::string& path : files) {
    const std::string& name = graphs.emplace_back(replay::read_graph(path)).name;
    if (!names.insert(name).second) throw UsageError(path + ": a second graph of the name " + name);
  }
  return graphs;
}

}  // namespace

int replay_command(const std::vector<std::string>& words) {
  const Options options = read_options(words, {"output", "quick", "limit"}, true);
  const std::vector<replay::Graph> graphs = graphs_in(options.files);
  catch_signals();
  const double seconds = options.limit > 0 ? options.limit : options.quick ? 60 : 180;  // enough for any of them
  const Machine machine = probe_in_child();
  std::filesystem::create_directories(options.folder);
  std::size_t failed = 0;
  for (const replay::Graph& graph : graphs) {
    throw_if_interrupted();
    const std::string path = options.folder + "/replay-" + graph.name + ".json";
    std::string outcome = "measured";
    if (graph.gpus > machine.gpus) {
      outcome = "it needs " + std::to_string(graph.gpus) + " GPUs; " + std::to_string(machine.gpus) + " are here";
      replace_file(path, to_json(graph, "skipped", outcome, machine.json));
    } else if (is_done(path, graph_for(graph, machine.capability), machine)) {
      outcome = "measured before";
    } else {
      const ChildEnd end = run_in_child([&] { return run_one(graph, path, options.quick, machine); }, seconds);
      if (end.status != exit_status::done) {
        outcome = "could not be run (" + (end.status ? "see above" : end.why) + ")";
        ++failed;
      }
    }
    std::fprintf(stderr, "replay %s: %s\n", graph.name.c_str(), outcome.c_str());
  }
  std::fprintf(stderr, "replay: %zu of %zu graphs are in %s\n", graphs.size() - failed, graphs.size(),
               options.folder.c_str());
  return failed == 0 ? exit_status::done : exit_status::incomplete;
}

}  // namespace foretrain::gpu
