#include "reports/measured/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/csv.hpp"
#include "model/base/format.hpp"
#include "model/base/statistics.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

std::vector<std::string> texts(const CsvRow& row) {
  std::vector<std::string> cells;
  for (const CsvCell& cell : row) cells.push_back(cell.text);
  return cells;
}

std::string waiting_cell(const HostMeasurement& run) {
  if (!run.waiting || !run.predicted_waiting) return "";
  return fmt::format("{:.0f}, {:.0f} %", *run.predicted_waiting / run.predicted * 100.0,
                     *run.waiting / run.median() * 100.0);
}

}  // namespace

std::string replay_text(const std::vector<HostMeasurement>& runs) {
  const bool steps = std::ranges::any_of(runs, [](const HostMeasurement& run) { return run.waiting.has_value(); });
  std::vector<std::string> header = {"run", "ranks", "predicted", "measured", "spread", "error", "cores", ""};
  if (steps) header.insert(header.begin() + 6, "waiting");
  TextTable table(steps ? "lrrrrrrrl" : "lrrrrrrl", header);
  bool limited = false;
  for (const HostMeasurement& run : runs) {
    const bool busy = run.busy > busy_limit;
    limited = limited || busy;
    std::vector<std::string> row = {run.name,
                                    std::to_string(run.ranks),
                                    format_seconds(run.predicted),
                                    format_seconds(run.median()),
                                    format_percent(run.spread()),
                                    signed_percent(run.error()),
                                    fmt::format("{:.0f} %", run.busy * 100.0),
                                    busy ? "*" : ""};
    if (steps) row.insert(row.begin() + 6, waiting_cell(run));
    table.add_row(std::move(row));
  }
  std::string text = "Predicted and measured: medians; spread is the distance of the quartiles";
  if (steps) text += "; waiting: predicted and measured share of the step in which the busiest rank does no work";
  text += "\n\n" + table.text(2);
  if (limited) text += fmt::format("\n  * the cores were busy more than {:.0f} % of the time\n", busy_limit * 100.0);
  return text;
}

std::vector<Comparison> comparisons_of(const std::vector<HostMeasurement>& runs) {
  std::vector<Comparison> comparisons;
  for (const HostMeasurement& run : runs) {
    comparisons.push_back({run.name, run.group, "time", run.median().value(), run.predicted.value()});
  }
  return comparisons;
}

std::string measured_table(std::string_view text, const std::string& file, const std::vector<HostMeasurement>& runs,
                           const HostMachine& machine) {
  const CsvTable table = parse_csv(text, file);
  std::vector<std::string> header = texts(table.header);
  const auto column = [&](const std::string& name) {
    const auto found = std::ranges::find(header, name);
    const auto place = static_cast<std::size_t>(found - header.begin());
    if (found == header.end()) header.push_back(name);
    return place;
  };
  const auto trains = [&](bool wanted) {
    return std::ranges::any_of(runs, [&](const HostMeasurement& run) { return run.trains == wanted; });
  };
  const std::size_t name = column("case"), none = header.size();
  const std::size_t step = trains(true) ? column("measured.step_time") : none;
  const std::size_t time = trains(false) ? column("measured.time") : none;
  const std::size_t spread = column("replay.spread"), busy = column("replay.cores_busy"), source = column("source");
  std::string result = csv_line(header) + "\n";
  for (const CsvRow& row : table.rows) {
    std::vector<std::string> cells = texts(row);
    cells.resize(header.size());
    const auto run = std::ranges::find_if(runs, [&](const auto& r) { return r.name == cells[name]; });
    if (run != runs.end()) {
      cells[run->trains ? step : time] = fmt::format("{:.6g} ms", run->median().value() * 1e3);
      cells[spread] = fmt::format("{:.3f}", run->spread());
      cells[busy] = fmt::format("{:.2f}", run->busy);
      cells[source] = fmt::format("foretrain replay, {}, {}", describe(machine), machine.date);
    }
    result += csv_line(cells) + "\n";
  }
  return result;
}

}  // namespace foretrain
