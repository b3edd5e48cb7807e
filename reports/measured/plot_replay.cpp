#include "reports/measured/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

CaseFigure replayed_cases(const std::vector<HostMeasurement>& runs, const std::string& prefix) {
  CaseFigure figure{"workers", "time of one all-reduce"};
  for (const HostMeasurement& run : runs) {
    if (!run.group.starts_with(prefix)) continue;
    const std::string panel =
        fmt::format("{} between hosts of {:.0f} Mbit/s", format_bytes(run.size), run.rate.value() * 8e-6);
    add_point(figure, panel, curve_name(run),
              {static_cast<double>(run.ranks), std::to_string(run.ranks), run.predicted, run.median()});
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
