#include "reports/measured/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "reports/print/number.hpp"

namespace foretrain {

namespace {

/// Open MPI and Gloo are named; ours go without saying.
std::string curve_name(const HostMeasurement& run) {
  std::string words = run.algorithm;
  std::replace(words.begin(), words.end(), '_', ' ');
  if (run.servers > 0) {
    words = counted(run.servers, "server");
    if (run.shared_hosts) words = run.servers == run.ranks ? "a server on every worker" : words + " on workers";
  }
  if (run.executor == "gloo") return words + ", Gloo";
  if (run.executor == "mpi") return words + ", Open MPI";
  return words;
}

void add(ReplayPanel& panel, const HostMeasurement& run) {
  const std::string name = curve_name(run);
  auto curve = std::find_if(panel.curves.begin(), panel.curves.end(), [&](const auto& c) { return c.name == name; });
  if (curve == panel.curves.end()) curve = panel.curves.insert(curve, {name, {}});
  const auto place = std::find_if(curve->points.begin(), curve->points.end(),
                                  [&](const ReplayPoint& point) { return point.workers > run.ranks; });
  curve->points.insert(place, {run.ranks, run.predicted, run.median()});
}

}  // namespace

std::vector<ReplayPanel> replay_panels(const std::vector<HostMeasurement>& runs, const std::string& prefix) {
  std::vector<std::string> groups;
  std::vector<ReplayPanel> panels;
  for (const HostMeasurement& run : runs) {
    if (!run.group.starts_with(prefix)) continue;
    const auto known = std::find(groups.begin(), groups.end(), run.group);
    const auto index = static_cast<std::size_t>(known - groups.begin());
    if (known == groups.end()) {
      groups.push_back(run.group);
      panels.push_back(
          {fmt::format("{} between hosts of {:.0f} Mbit/s", format_bytes(run.size), run.rate.value() * 8e-6), {}});
    }
    add(panels[index], run);
  }
  return panels;
}

Figure to_figure(const std::vector<ReplayPanel>& panels) {
  Figure figure;
  for (const ReplayPanel& replayed : panels) {
    Seconds longest;
    std::set<int> workers;
    for (const ReplayCurve& curve : replayed.curves) {
      for (const ReplayPoint& point : curve.points) {
        longest = std::max({longest, point.predicted, point.measured});
        workers.insert(point.workers);
      }
    }
    const TimeUnit unit = time_unit(longest);
    Panel panel{.title = replayed.title, .subtitle = "lines: predicted; points: measured", .width = 330, .height = 290};
    panel.x = {.name = "workers"};
    for (const int n : workers) panel.x.tics.push_back({static_cast<double>(n), std::to_string(n)});
    panel.y = {.name = fmt::format("time of one all-reduce ({})", unit.name), .grid = true};
    for (std::size_t i = 0; i < replayed.curves.size(); ++i) {
      const ReplayCurve& curve = replayed.curves[i];
      const std::string_view colour = palette[i % palette.size()];
      Series predicted{.colour = colour, .line = 2.0}, measured{.colour = colour, .dot = Dot::own, .dot_size = 0.8};
      predicted.name = curve.name;
      predicted.at_end = true;
      predicted.value = format_seconds(curve.points.back().measured);
      measured.told = curve.name;
      measured.measured = true;
      for (const ReplayPoint& point : curve.points) {
        predicted.points.push_back({static_cast<double>(point.workers), point.predicted / unit.size});
        measured.points.push_back({static_cast<double>(point.workers), point.measured / unit.size});
      }
      panel.series.push_back(std::move(predicted));
      panel.series.push_back(std::move(measured));
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

TimelineFigure host_timeline(const HostMeasurement& run, const std::string& streams) {
  if (run.tasks.empty()) throw UsageError(run.name + ": its tasks were not kept: foretrain replay --timeline");
  TimelineFigure figure{fmt::format("{}: {} predicted, {} measured", run.name, format_seconds(run.predicted),
                                    format_seconds(run.median())),
                        {},
                        {}};
  std::vector<std::string> named;
  for (const HostTask& task : run.tasks) {
    const bool wanted = task.stream.find(streams) != std::string::npos;
    if (wanted && std::ranges::find(named, task.stream) == named.end()) named.push_back(task.stream);
  }
  std::ranges::sort(named);
  if (named.empty()) throw UsageError(run.name + ": no stream's name contains " + streams);
  for (const std::string& stream : named) {
    for (const bool predicted : {true, false}) {
      for (const HostTask& task : run.tasks) {
        const Seconds start = predicted ? task.predicted_start : task.start;
        const Seconds end = predicted ? task.predicted_end : task.end;
        if (task.stream != stream || !(end > start)) continue;
        figure.entries.push_back(
            {stream + (predicted ? ", predicted" : ", measured"), task.name, start, end - start, -1, task.category});
      }
    }
  }
  return figure;
}

}  // namespace foretrain
