#include "reports/replay_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/csv.hpp"

namespace foretrain {

namespace {

std::vector<std::string> texts(const CsvRow& row) {
  std::vector<std::string> cells;
  for (const CsvCell& cell : row) cells.push_back(cell.text);
  return cells;
}

}  // namespace

std::string measured_table(std::string_view text, const std::string& file, const std::vector<HostMeasurement>& runs,
                           const HostMachine& machine) {
  const CsvTable table = parse_csv(text, file);
  std::vector<std::string> header = texts(table.header);
  const auto column = [&](const std::string& name) {
    const auto found = std::find(header.begin(), header.end(), name);
    const auto place = static_cast<std::size_t>(found - header.begin());
    if (found == header.end()) header.push_back(name);
    return place;
  };
  const std::size_t name = column("case"), time = column("measured.time"), spread = column("replay.spread"),
                    busy = column("replay.cores_busy"), source = column("source");
  std::string result = csv_line(header) + "\n";
  for (const CsvRow& row : table.rows) {
    std::vector<std::string> cells = texts(row);
    cells.resize(header.size());
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const auto& r) { return r.name == cells[name]; });
    if (run != runs.end()) {
      cells[time] = fmt::format("{:.6g} ms", run->median().value() * 1e3);
      cells[spread] = fmt::format("{:.3f}", run->spread());
      cells[busy] = fmt::format("{:.2f}", run->busy);
      cells[source] = fmt::format("foretrain replay, {}, {}", describe(machine), machine.date);
    }
    result += csv_line(cells) + "\n";
  }
  return result;
}

}  // namespace foretrain
