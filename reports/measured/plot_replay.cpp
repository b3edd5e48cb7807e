#include "reports/measured/measured_graph.hpp"
#include "reports/measured/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/format.hpp"

namespace foretrain {

namespace {

/// Predicted and measured rows of each place, one above the other.
TimelineFigure both_rows(std::string title, const std::vector<std::string>& places,
                         const std::vector<MeasuredTask>& tasks) {
  TimelineFigure figure{std::move(title)};
  for (const std::string& place : places) {
    for (const bool predicted : {true, false}) {
      for (const MeasuredTask& task : tasks) {
        if (task.resource != place || (!predicted && (!task.start || !task.end))) continue;
        const Seconds start = predicted ? task.predicted_start : *task.start;
        const Seconds end = predicted ? task.predicted_end : *task.end;
        if (!(end > start)) continue;
        figure.entries.push_back(
            {place + (predicted ? ", predicted" : ", measured"), task.name, start, end - start, -1, task.category});
      }
    }
  }
  return figure;
}

}  // namespace

TimelineFigure host_timeline(const HostMeasurement& run, const std::string& streams) {
  if (run.tasks.empty()) throw UsageError(run.name + ": its tasks were not kept: foretrain replay --timeline");
  std::vector<MeasuredTask> tasks;
  std::vector<std::string> named;
  for (const HostTask& task : run.tasks) {
    tasks.push_back(
        {task.name, task.category, task.stream, 0, task.predicted_start, task.predicted_end, task.start, task.end});
    const bool wanted = task.stream.find(streams) != std::string::npos;
    if (wanted && std::ranges::find(named, task.stream) == named.end()) named.push_back(task.stream);
  }
  std::ranges::sort(named);
  if (named.empty()) throw UsageError(run.name + ": no stream's name contains " + streams);
  return both_rows(fmt::format("{}: {} predicted, {} measured", run.name, format_seconds(run.predicted),
                               format_seconds(run.median())),
                   named, tasks);
}

TimelineFigure measured_timeline(const MeasuredGraph& graph) {
  std::vector<std::string> places;
  for (const MeasuredTask& task : graph.tasks) {
    const bool known = std::ranges::find(places, task.resource) != places.end();
    if (!known && task.resource != "launches") places.push_back(task.resource);
  }
  return both_rows(graph.scenario, places, graph.tasks);
}

}  // namespace foretrain
