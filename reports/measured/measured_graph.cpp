#include "reports/measured/measured_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/format.hpp"
#include "model/base/statistics.hpp"
#include "reports/print/table.hpp"
#include "validate/replay/result.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

constexpr const char* graph_kind = "foretrain gpu replay";
constexpr std::size_t named_tasks = 3;

Seconds seconds(const json& object, const char* key) { return Seconds(object.at(key).get<double>()); }

std::optional<Seconds> optional_seconds(const json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return seconds(object, key);
}

std::string machine_of(const json& document) {
  if (!document.contains("machine")) return "";
  const auto text = [&](const char* path, const char* unknown) {
    return document.value(json::json_pointer(path), std::string(unknown));
  };
  return text("/machine/gpus/0/name", "unknown GPU") + ", driver " + text("/machine/driver", "unknown");
}

void read_measured(const json& document, MeasuredGraph& graph) {
  for (const json& value : document.at("step").at("values")) graph.steps.push_back(value.get<double>());
  const bool fine =
      !graph.steps.empty() && std::ranges::all_of(graph.steps, [](double s) { return std::isfinite(s) && s > 0.0; });
  if (!fine) throw std::invalid_argument("no steps that took time");
  graph.memory = Bytes(document.at("memory_bytes").get<double>());
  graph.host = seconds(document, "host_s");
  for (const json& task : document.at("tasks")) {
    graph.tasks.push_back({task.at("name").get<std::string>(), task.at("category").get<std::string>(),
                           task.at("resource").get<std::string>(), task.at("block_number").get<std::size_t>(),
                           seconds(task, "predicted_start_s"), seconds(task, "predicted_end_s"),
                           optional_seconds(task, "start_s"), optional_seconds(task, "end_s")});
  }
  for (const json& work : document.at("work")) {
    graph.work.push_back({work.at("block").get<std::string>(), work.at("name").get<std::string>(),
                          seconds(work, "predicted_s"), seconds(work, "measured_s"),
                          work.at("block_number").get<std::size_t>(), work.at("work_number").get<std::size_t>(),
                          work.at("tasks").get<int>()});
  }
}

/// Replays of the same machine stand together under its name.
std::string machines_text(const std::vector<MeasuredGraph>& graphs) {
  std::string text;
  std::vector<std::string> seen;
  for (const MeasuredGraph& graph : graphs) {
    std::string pair = fmt::format("predicted for {}, run on {}", graph.hardware, graph.machine);
    if (graph.steps.empty() || std::ranges::find(seen, pair) != seen.end()) continue;
    text += (seen.empty() ? "" : "; ") + pair;
    seen.push_back(std::move(pair));
  }
  return text;
}

/// Whether the host's dispatches take what they took in the replay, which kept to their prediction of then.
bool at_same_pace(const MeasuredGraph& measured, const replay::Graph& graph) {
  constexpr double same = 0.01;
  for (std::size_t i = 0; i < measured.tasks.size(); ++i) {
    const replay::Task& task = graph.tasks.at(i);
    if (graph.resources.at(static_cast<std::size_t>(task.resource)).kind != replay::Resource::Kind::framework) continue;
    const double then = (measured.tasks[i].predicted_end - measured.tasks[i].predicted_start).value();
    if (std::abs(task.end - task.start - then) > same * then) return false;
  }
  return true;
}

}  // namespace

Seconds MeasuredGraph::measured() const { return Seconds(median(steps)); }

double MeasuredGraph::spread() const { return (quantile(steps, 0.75) - quantile(steps, 0.25)) / median(steps); }

bool is_measured_graph(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  return document.is_object() && document.contains("kind") && document.at("kind") == graph_kind;
}

MeasuredGraph read_measured_graph(const std::string& path) {
  const std::string text = read_text_file(path, 100'000'000);
  try {
    const json document = json::parse(text);
    if (document.at("kind") != graph_kind) throw std::invalid_argument("another kind of file");
    MeasuredGraph graph;
    graph.name = document.at("name").get<std::string>();
    graph.scenario = document.at("scenario").get<std::string>();
    graph.hardware = document.at("hardware").get<std::string>();
    graph.fidelity = document.at("fidelity").get<std::string>();
    graph.predicted = seconds(document, "predicted_s");
    graph.machine = machine_of(document);
    graph.identity = document.at("identity").get<std::string>();
    for (const json& note : document.at("notes")) graph.notes.push_back(note.get<std::string>());
    if (document.at("status") == "measured") read_measured(document, graph);
    return graph;
  } catch (const std::exception& error) {
    throw ScenarioError({path}, "", fmt::format("this is no replay of a task graph ({})", error.what()),
                        "a file replay-NAME.json that foretrain-gpu replay wrote");
  }
}

std::vector<MeasuredGraph> read_measured_graphs(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("replay-") && name.ends_with(".json")) paths.push_back(entry.path().string());
  }
  if (paths.empty()) throw UsageError(folder + ": no replay-*.json; the folder of foretrain-gpu replay -o");
  std::ranges::sort(paths);
  std::vector<MeasuredGraph> graphs;
  graphs.reserve(paths.size());
  for (const std::string& path : paths) graphs.push_back(read_measured_graph(path));
  return graphs;
}

void predict_again(MeasuredGraph& measured, const replay::Graph& graph) {
  if (measured.identity != replay::identity_of(graph)) {
    measured.notes.emplace_back("what this scenario does has changed: predicted when it was exported");
    return;
  }
  if (!at_same_pace(measured, graph)) {
    measured.notes.emplace_back(
        "its host ran at the pace at which it was exported, now another is predicted: export and replay it anew");
  }
  measured.hardware = graph.hardware;
  measured.fidelity = graph.fidelity;
  measured.predicted = Seconds(graph.predicted);
  for (std::size_t i = 0; i < measured.tasks.size(); ++i) {
    measured.tasks[i].predicted_start = Seconds(graph.tasks.at(i).start);
    measured.tasks[i].predicted_end = Seconds(graph.tasks.at(i).end);
  }
  for (MeasuredWork& work : measured.work) {
    const Work& piece = graph.blocks.at(work.block_number).work.at(work.work_number);
    if (const auto* kernel = std::get_if<KernelWork>(&piece)) {
      work.predicted = kernel->predicted * static_cast<double>(kernel->count);
    }
  }
}

std::vector<TaskError> worst_tasks(const MeasuredGraph& graph, std::size_t count) {
  std::map<std::string, TaskError> errors;
  const auto add = [&](const std::string& name, Seconds predicted, Seconds measured, int times) {
    TaskError& error = errors[name];
    error.name = name;
    error.count += times;
    error.predicted += predicted * static_cast<double>(times);
    error.measured += measured * static_cast<double>(times);
  };
  for (const MeasuredTask& task : graph.tasks) {
    const bool divided =
        std::ranges::any_of(graph.work, [&](const auto& work) { return work.block_number == task.block_number; });
    if (divided || !task.start || !task.end) continue;
    add(task.name + " on " + task.resource, task.predicted_end - task.predicted_start, *task.end - *task.start, 1);
  }
  for (const MeasuredWork& work : graph.work) {
    add(work.block + ": " + work.name, work.predicted, work.measured, work.tasks);
  }
  std::vector<TaskError> worst;
  worst.reserve(errors.size());
  for (auto& [name, error] : errors) worst.push_back(std::move(error));
  const auto magnitude = [](const TaskError& error) { return std::max(error.off(), error.off() * -1.0); };
  std::ranges::stable_sort(worst, [&](const auto& a, const auto& b) { return magnitude(a) > magnitude(b); });
  if (worst.size() > count) worst.resize(count);
  return worst;
}

std::string measured_graphs_text(const std::vector<MeasuredGraph>& graphs) {
  TextTable table("lrrrrrr", {"graph", "predicted", "measured", "spread", "error", "host", "memory"});
  std::vector<Comparison> comparisons;
  std::string worst, failed;
  for (const MeasuredGraph& graph : graphs) {
    if (graph.steps.empty()) {
      failed += fmt::format("  {}: {}\n", graph.name, graph.notes.empty() ? "" : graph.notes.front());
      continue;
    }
    table.add_row({graph.name, format_seconds(graph.predicted), format_seconds(graph.measured()),
                   format_percent(graph.spread()), signed_percent(graph.error()), format_seconds(graph.host),
                   format_bytes(graph.memory)});
    comparisons.push_back({graph.name, "", "time", graph.measured().value(), graph.predicted.value()});
    worst += "  " + graph.name + "\n";
    for (const TaskError& task : worst_tasks(graph, named_tasks)) {
      const std::string times = task.count > 1 ? fmt::format(" (x{})", task.count) : "";
      worst += fmt::format("    {}{}: {} predicted, {} measured\n", task.name, times, format_seconds(task.predicted),
                           format_seconds(task.measured));
    }
    for (const std::string& note : graph.notes) worst += "    " + note + "\n";
  }
  std::string text;
  if (!comparisons.empty()) {
    const ErrorStatistics errors = error_statistics(comparisons);
    text += "Predicted and measured steps: medians; spread is the distance of the quartiles\n" + machines_text(graphs) +
            "\n\n" + table.text(2);
    text += fmt::format("\n  {} graphs: median absolute error {:.1f} %, bias {}, worst {} ({})\n", errors.n,
                        errors.median_error * 100.0, signed_percent(errors.bias), signed_percent(errors.worst),
                        errors.worst_case);
    text += "\nWhere prediction and measurement are furthest apart\n" + worst;
  }
  if (!failed.empty()) text += std::string(text.empty() ? "" : "\n") + "Not run\n" + failed;
  return text;
}

}  // namespace foretrain
