#include "reports/studies/server_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/result/csv.hpp"

namespace foretrain {

namespace {

/// The column of a key, by its whole name.
std::optional<std::size_t> find_column(const CsvTable& table, const std::string& key) {
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    if (table.header[i].text == key) return i;
  }
  return std::nullopt;
}

std::size_t column(const CsvTable& table, const std::string& key, const char* option) {
  if (const auto found = find_column(table, key)) return *found;
  throw UsageError(fmt::format("{}: there is no column {}; sweep it with --vary, or name another with {}",
                               table.header.front().where.file, key, option));
}

/// A key of the synchronisation, whether a collective or a training step was swept.
std::optional<std::size_t> find_sync_column(const CsvTable& table, const std::string& name) {
  const auto found = find_column(table, "workload.collective." + name);
  return found ? found : find_column(table, "plan.sync." + name);
}

/// Distinct values, increasing; their unit goes into the title when all have the same.
MapAxis axis_of(const std::string& key, std::vector<std::string>& values) {
  std::stable_sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
    return magnitude(a).value_or(0.0) < magnitude(b).value_or(0.0);
  });
  MapAxis axis{key, keys::title_of(key), values};
  if (const std::string unit = common_unit(axis.labels); !unit.empty()) axis.title += fmt::format(" ({})", unit);
  return axis;
}

struct MapRow {
  std::string x, y, panel, algorithm, servers, placement;
  Seconds time;
};

std::optional<Seconds> predicted_time(const CsvTable& table, const CsvRow& row) {
  // The latter two are older names, with units in the cells.
  for (const char* name : {"predicted.time_s", "predicted.step_time_s", "predicted.time", "predicted.step_time"}) {
    const auto found = find_column(table, name);
    if (!found || row[*found].text.empty()) continue;
    if (const auto seconds = magnitude(row[*found].text)) return Seconds(*seconds);
  }
  return std::nullopt;
}

/// Fills empty keys with those of the all-reduce map; without a panel key there is one panel.
MapKeys chosen_keys(const CsvTable& table, MapKeys keys) {
  constexpr const char* ranks = "workload.collective.ranks";
  if (keys.x.empty()) keys.x = "cluster.network.nic_bandwidth";
  if (keys.y.empty()) keys.y = "workload.collective.size";
  const bool is_free = keys.panels.empty() && keys.x != ranks && keys.y != ranks;
  if (is_free && find_column(table, ranks)) keys.panels = ranks;
  return keys;
}

std::vector<MapRow> rows_of(const CsvTable& table, const MapKeys& keys, MapFigure& figure) {
  using Column = std::optional<std::size_t>;
  const Column x = column(table, keys.x, "--x"), y = column(table, keys.y, "--y");
  Column panel;
  if (!keys.panels.empty()) panel = column(table, keys.panels, "--panels");
  const auto algorithm = find_sync_column(table, "algorithm");
  if (!algorithm) {
    throw UsageError(
        fmt::format("{}: there is no column workload.collective.algorithm or plan.sync.algorithm; sweep "
                    "with --vary or --set of the algorithm",
                    table.header.front().where.file));
  }
  const Column servers = find_sync_column(table, "servers"), placement = find_sync_column(table, "placement");
  std::vector<MapRow> rows;
  for (const CsvRow& cells : table.rows) {
    const auto text = [&](Column i) { return i ? std::string(trim(cells.at(i.value()).text)) : std::string(); };
    ++figure.predictions;
    const auto time = predicted_time(table, cells);
    if (!time) {
      ++figure.failed;
      continue;
    }
    rows.push_back({text(x), text(y), text(panel), text(algorithm), text(servers), text(placement), *time});
  }
  return rows;
}

/// Place of a value among those of an axis; new ones are added.
std::size_t place(std::vector<std::string>& values, const std::string& value) {
  const auto found = std::ranges::find(values, value) - values.begin();
  if (at_index(found) == values.size()) values.push_back(value);
  return at_index(found);
}

/// Also of hierarchical_parameter_server.
bool is_server(const MapRow& row) { return row.algorithm.ends_with("parameter_server"); }

MapWay way_of(const MapRow& row) {
  if (!is_server(row)) return row.algorithm == "ring" ? MapWay::ring : MapWay::all_reduce;
  if (row.placement != "dedicated") return MapWay::colocated;
  return row.servers.empty() || row.servers == "1" ? MapWay::one : MapWay::several;
}

void enter(MapCell& cell, MapWay way, Seconds time) {
  std::optional<Seconds>& best = cell[static_cast<std::size_t>(way)];
  best = best ? std::min(*best, time) : time;
  if (way == MapWay::ring) enter(cell, MapWay::all_reduce, time);
}

constexpr std::array<MapBand, 4> all_bands = {
    {{"One dedicated server against a ring", MapWay::one, MapWay::one, MapWay::ring},
     {"Several dedicated servers against a ring", MapWay::several, MapWay::several, MapWay::ring},
     {"Servers on the workers’ machines against a ring", MapWay::colocated, MapWay::colocated, MapWay::ring},
     {"The best servers against the best all-reduce", MapWay::one, MapWay::colocated, MapWay::all_reduce}}};

/// Time of the servers over the other's, a row for each y from the lowest.
std::string ratios_table(const MapFigure& figure, const MapBand& band, const MapPanel& panel) {
  const std::size_t columns = figure.x.labels.size();
  std::vector<std::string> header = {figure.y.title};
  header.insert(header.end(), figure.x.labels.begin(), figure.x.labels.end());
  TextTable table(std::string(header.size(), 'r'), header);
  for (std::size_t y = 0; y < figure.y.labels.size(); ++y) {
    std::vector<std::string> row = {figure.y.labels[y]};
    for (std::size_t x = 0; x < columns; ++x) {
      const std::optional<double> ratio = band.ratio(panel.at(x, y, columns));
      row.push_back(ratio ? plain_number(*ratio) : "-");
    }
    table.add_row(row);
  }
  return table.text(2);
}

}  // namespace

std::optional<double> MapBand::ratio(const MapCell& cell) const {
  std::optional<Seconds> best;
  for (auto way = static_cast<std::size_t>(first); way <= static_cast<std::size_t>(last); ++way) {
    if (cell[way] && (!best || *cell[way] < *best)) best = cell[way];
  }
  const std::optional<Seconds>& than = cell[static_cast<std::size_t>(other)];
  return best && than ? std::optional(*best / *than) : std::nullopt;
}

std::vector<MapBand> MapFigure::bands() const {
  std::vector<MapBand> result;
  std::ranges::copy_if(all_bands, std::back_inserter(result), [&](const MapBand& band) {
    if (band.other == MapWay::all_reduce && algorithms.size() < 2) return false;  // the same as against the ring
    return std::ranges::any_of(panels, [&](const MapPanel& panel) {
      return std::ranges::any_of(panel.cells, [&](const MapCell& cell) { return band.ratio(cell).has_value(); });
    });
  });
  return result;
}

MapFigure map_figure(const std::vector<CsvTable>& tables, const MapKeys& wanted) {
  MapFigure figure;
  const MapKeys keys = chosen_keys(tables.front(), wanted);
  std::vector<MapRow> rows;
  for (const CsvTable& table : tables) {
    std::vector<MapRow> more = rows_of(table, keys, figure);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  std::vector<std::string> xs, ys, panels;
  bool servers = false;
  for (const MapRow& row : rows) {
    place(xs, row.x);
    place(ys, row.y);
    place(panels, row.panel);
    servers = servers || is_server(row);
    if (!is_server(row)) place(figure.algorithms, row.algorithm);
  }
  if (!servers) throw UsageError("plot map: no row has the algorithm parameter_server; sweep it too");
  if (std::ranges::find(figure.algorithms, "ring") == figure.algorithms.end()) {
    throw UsageError("plot map: no row has the algorithm ring, which the servers are compared with; sweep it too");
  }
  figure.x = axis_of(keys.x, xs);
  figure.y = axis_of(keys.y, ys);
  figure.panel = axis_of(keys.panels, panels);
  for (const std::string& label : figure.panel.labels) {
    figure.panels.push_back({label, std::vector<MapCell>(xs.size() * ys.size())});
  }
  for (const MapRow& row : rows) {
    MapPanel& panel = figure.panels[place(panels, row.panel)];
    enter(panel.cells[place(ys, row.y) * xs.size() + place(xs, row.x)], way_of(row), row.time);
  }
  return figure;
}

std::string to_text(const MapFigure& figure) {
  std::string text = fmt::format("When does a parameter server win? {} predictions\n", figure.predictions);
  for (const MapBand& band : figure.bands()) {
    for (const MapPanel& panel : figure.panels) {
      const std::string of = panel.label.empty() ? "" : fmt::format(", {} {}", panel.label, figure.panel.title);
      text += fmt::format("\n{}{}: time of the servers ÷ the other, by {}\n\n{}", band.title, of, figure.x.title,
                          ratios_table(figure, band, panel));
    }
  }
  return text;
}

}  // namespace foretrain
