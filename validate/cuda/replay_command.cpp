// foretrain-gpu replay: every graph in a process of its own, so that what goes wrong on the GPU ends with it.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "validate/cuda/arguments.hpp"
#include "validate/cuda/child_process.hpp"
#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/timing.hpp"
#include "validate/cuda/files.hpp"
#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_spec.hpp"
#include "validate/cuda/probe.hpp"
#include "validate/cuda/replay/replay.hpp"
#include "validate/measure/json_object.hpp"
#include "validate/measure/signals.hpp"
#include "validate/replay/graph_text.hpp"

namespace foretrain::gpu {

namespace {

std::string result_path(const std::string& folder, const replay::Graph& graph) {
  return folder + "/replay-" + graph.name + ".json";
}

/// The graph as this machine's GPU can run it: fp16 in place of bf16 before Ampere.
replay::Graph graph_here(replay::Graph graph) {
  for (replay::Block& block : graph.blocks) {
    for (Work& work : block.work) {
      auto* kernel = std::get_if<KernelWork>(&work);
      if (kernel == nullptr) continue;
      kernel->fields = with_precision_of({kernel->kind, kernel->fields}, compute_capability()).fields;
    }
  }
  return graph;
}

/// Whether the folder holds this graph's replay already, by this machine's identity.
bool is_done(const std::string& path, const replay::Graph& graph, const std::string& machine) {
  const std::string text = file_text(path);
  const std::string mark = R"("identity":")" + replay::identity_of(graph) + '"';
  return text.find(R"("status":"measured")") != std::string::npos && text.find(mark) != std::string::npos &&
         text.find(json_text_field(machine, "identity")) != std::string::npos;
}

/// The child: one graph. What it cannot do is in the file, and the exit status.
int run_one(const std::string& path, const std::string& folder, bool quick) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a killed parent leaves nothing behind
  const Nvml nvml;
  const std::string machine = probe_machine(nvml).json;
  const replay::Graph stated = replay::read_graph(path), graph = graph_here(stated);
  if (graph.gpus == 1) bind_to_node_of(bus_id_of(0));
  warm_clocks(Seconds(quick ? 0.3 : 1.0));
  try {
    replay::Result result = run_replay(graph, quick, nvml);
    if (graph != stated) {
      result.notes.emplace_back("fp16 in place of bf16: predict it with --set workload.train.precision=fp16");
    }
    replace_file(result_path(folder, graph), to_json(graph, result, machine));
    return exit_status::done;
  } catch (const GpuError& error) {
    const bool skipped = error.fault() == Fault::unsupported || error.fault() == Fault::out_of_memory;
    replace_file(result_path(folder, graph), to_json(graph, skipped ? "skipped" : "failed", error.what(), machine));
    throw;
  }
}

/// What the child wrote to standard error is on the user's terminal; its end is told here.
bool run_in_child(const std::string& path, const std::string& folder, bool quick, double seconds) {
  std::vector<std::string> words = {"replay", "--graph", path, "-o", folder};
  if (quick) words.emplace_back("--quick");
  ChildProcess child(words, STDOUT_FILENO);
  const auto status = child.listen([](const std::string&) {}, seconds);
  if (!status) std::fprintf(stderr, "%s: %s\n", path.c_str(), child.why().c_str());
  return status == exit_status::done;
}

}  // namespace

int replay_command(const std::vector<std::string>& words) {
  const Arguments arguments(words, {"--quick"}, {"--output", "--graph", "--limit"}, true);
  const std::string folder = arguments.text("--output");
  const bool quick = arguments.has("--quick");
  catch_signals();
  if (arguments.has("--graph")) return run_one(arguments.text("--graph"), folder, quick);
  if (arguments.files().empty()) {
    throw UsageError("replay: name graphs, as validate/cuda/graphs/*.graph; foretrain replay --export writes others");
  }
  // Every file is read before the first is run; a number of seconds is enough for any of them.
  std::vector<replay::Graph> graphs;
  std::set<std::string> names;
  for (const std::string& path : arguments.files()) {
    graphs.push_back(replay::read_graph(path));
    const std::string& name = graphs.back().name;
    if (!names.insert(name).second) throw UsageError(path + ": a second graph of the name " + name);
  }
  const double seconds = arguments.integer("--limit", quick ? 60 : 180, 1);
  const std::string machine = probe_in_child();
  const int gpus = visible_devices();
  std::filesystem::create_directories(folder);
  std::size_t failed = 0;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    throw_if_interrupted();
    const replay::Graph graph = graph_here(graphs[i]);
    const std::string path = result_path(folder, graph);
    std::string outcome = "measured";
    if (graph.gpus > gpus) {
      outcome = "it needs " + std::to_string(graph.gpus) + " GPUs; " + std::to_string(gpus) + " are here";
      replace_file(path, to_json(graph, "skipped", outcome, machine));
    } else if (is_done(path, graph, machine)) {
      outcome = "measured before";
    } else if (!run_in_child(arguments.files()[i], folder, quick, seconds)) {
      outcome = "could not be run (see above)";
      ++failed;
    }
    std::fprintf(stderr, "replay %s: %s\n", graph.name.c_str(), outcome.c_str());
  }
  std::fprintf(stderr, "replay: %zu of %zu graphs are in %s\n", graphs.size() - failed, graphs.size(), folder.c_str());
  return failed == 0 ? exit_status::done : exit_status::incomplete;
}

}  // namespace foretrain::gpu
