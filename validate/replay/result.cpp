#include "validate/replay/result.hpp"

#include <algorithm>
#include <cstdio>

#include "model/base/hash.hpp"
#include "validate/measure/json_object.hpp"
#include "validate/measure/sampling.hpp"
#include "validate/replay/graph_text.hpp"

namespace foretrain::replay {

namespace {

JsonObject header(const Graph& graph, const std::string& status, const std::string& machine) {
  JsonObject object;
  object.text("kind", "foretrain gpu replay").number("version", 1.0).text("status", status);
  object.text("name", graph.name).text("scenario", graph.scenario).text("hardware", graph.hardware);
  object.text("fidelity", graph.fidelity).text("identity", identity_of(graph)).number("gpus", graph.gpus);
  object.number("predicted_s", graph.predicted);
  if (!machine.empty()) object.raw("machine", machine);
  return object;
}

/// Name of a piece of work, and its prediction.
std::pair<std::string, double> describe(const Work& work) {
  if (const auto* kernel = std::get_if<KernelWork>(&work))
    return {kernel->name, kernel->predicted.value() * kernel->count};
  return {std::holds_alternative<CopyWork>(work) ? "copy" : "collective", 0.0};
}

std::string task_text(const Graph& graph, std::size_t number, const TaskTime& time) {
  const Task& task = graph.tasks[number];
  const Block& block = graph.blocks[static_cast<std::size_t>(task.block)];
  JsonObject object;
  object.number("block_number", task.block).text("name", block.name).text("category", block.category);
  object.text("resource", graph.resources[static_cast<std::size_t>(task.resource)].name);
  object.number("predicted_start_s", task.start).number("predicted_end_s", task.end);
  object.number("start_s", time.start).number("end_s", time.end).number("spread", time.spread);
  return object.number("host_s", time.host).str();
}

std::string work_text(const Graph& graph, const WorkTime& time) {
  const Block& block = graph.blocks[static_cast<std::size_t>(time.block)];
  const auto [name, predicted] = describe(block.work[time.index]);
  JsonObject object;
  const auto count = std::ranges::count_if(graph.tasks, [&](const Task& task) { return task.block == time.block; });
  object.number("block_number", time.block).number("work_number", static_cast<double>(time.index));
  object.number("tasks", static_cast<double>(count));
  object.text("block", block.name).text("name", name).number("predicted_s", predicted);
  if (const auto* kernel = std::get_if<KernelWork>(&block.work[time.index])) {
    object.text("kind", kernel->kind)
        .number("count", kernel->count)
        .texts("fields", time.ran.empty() ? kernel->fields : time.ran);
  }
  return object.number("measured_s", time.measured).str();
}

}  // namespace

std::string identity_of(const Graph& graph) {
  Graph bare = graph;
  bare.scenario = bare.hardware = bare.fidelity = "";
  bare.predicted = 0.0;
  for (Block& block : bare.blocks) {
    block.predicted = 0.0;
    for (Work& work : block.work) {
      if (auto* kernel = std::get_if<KernelWork>(&work)) kernel->predicted = Seconds(0.0);
      auto* host = std::get_if<HostWork>(&work);
      if (host != nullptr && host->action == HostWork::Action::dispatch) host->duration = Seconds(0.0);
    }
  }
  for (Task& task : bare.tasks) task.start = task.end = 0.0;
  char text[32];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(fnv_1a(to_text(bare))));
  return text;
}

std::string to_json(const Graph& graph, const Result& result, const std::string& machine) {
  JsonObject object = header(graph, "measured", machine);
  const Sampled steps{result.steps};
  object.raw("step", JsonObject()
                         .numbers("values", result.steps)
                         .number("median", steps.median())
                         .number("spread", steps.spread())
                         .str());
  if (result.state) object.raw("state", state_text(*result.state));
  object.number("host_s", result.host_launch).number("memory_bytes", result.memory).texts("notes", result.notes);
  std::vector<std::string> tasks, work;
  for (std::size_t i = 0; i < result.tasks.size(); ++i) tasks.push_back(task_text(graph, i, result.tasks[i]));
  for (const WorkTime& time : result.work) work.push_back(work_text(graph, time));
  return object.raw("work", json_list(work)).raw("tasks", json_list(tasks)).str() + "\n";
}

std::string to_json(const Graph& graph, const std::string& status, const std::string& why, const std::string& machine) {
  return header(graph, status, machine).texts("notes", std::vector{why}).str() + "\n";
}

}  // namespace foretrain::replay
