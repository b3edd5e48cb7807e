#include "reports/studies/server_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "model/base/error.hpp"
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

/// One prediction of the sweep.
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

/// Keys that have several values in the tables and are no part of the ways that are compared, in order of columns.
std::vector<std::string> varying_keys(const std::vector<CsvTable>& tables) {
  std::map<std::string, std::set<std::string>> values;
  std::vector<std::string> keys;
  for (const CsvTable& table : tables) {
    for (std::size_t i = 0; i < table.header.size(); ++i) {
      const std::string& key = table.header[i].text;
      const std::string word = key.substr(key.rfind('.') + 1);
      const bool way = word == "algorithm" || word == "servers" || word == "placement";
      const bool result = key.starts_with("predicted.") || key.starts_with("measured.");
      if (way || result || key.find('.') == std::string::npos) continue;
      for (const CsvRow& row : table.rows) values[key].insert(row[i].text);
      if (values[key].size() > 1 && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

/// The keys with those chosen that are empty; panels may stay empty: one panel.
MapKeys chosen_keys(const std::vector<CsvTable>& tables, MapKeys keys) {
  std::vector<std::string> left = varying_keys(tables);
  std::erase_if(left, [&](const std::string& key) { return key == keys.x || key == keys.y || key == keys.panels; });
  const auto choose = [&](std::string& key, const char* usual) {
    if (!key.empty()) return;
    if (find_column(tables.front(), usual)) {
      key = usual;
    } else if (!left.empty()) {
      key = left.front();
    }
    std::erase(left, key);
  };
  // Before the others take what is usual for one of them.
  std::erase(left, "cluster.network.nic_bandwidth");
  choose(keys.x, "cluster.network.nic_bandwidth");
  choose(keys.y, "workload.collective.size");
  choose(keys.panels, "workload.collective.ranks");
  if (keys.x.empty() || keys.y.empty()) {
    throw UsageError("plot map: needs two keys that vary; sweep them with --vary, or name them with --x and --y");
  }
  return keys;
}

std::vector<MapRow> rows_of(const CsvTable& table, const MapKeys& keys, MapFigure& figure) {
  const std::size_t x = column(table, keys.x, "--x");
  const std::size_t y = column(table, keys.y, "--y");
  const std::size_t nowhere = table.header.size();
  const std::size_t panel = keys.panels.empty() ? nowhere : column(table, keys.panels, "--panels");
  const auto algorithm = find_sync_column(table, "algorithm");
  if (!algorithm) {
    throw UsageError(
        fmt::format("{}: there is no column workload.collective.algorithm or plan.sync.algorithm; sweep "
                    "with --vary or --set of the algorithm",
                    table.header.front().where.file));
  }
  const std::size_t servers = find_sync_column(table, "servers").value_or(nowhere);
  const std::size_t placement = find_sync_column(table, "placement").value_or(nowhere);
  std::vector<MapRow> rows;
  for (const CsvRow& cells : table.rows) {
    const auto text = [&](std::size_t i) { return i == nowhere ? std::string() : std::string(trim(cells[i].text)); };
    ++figure.predictions;
    const auto time = predicted_time(table, cells);
    if (!time) {
      ++figure.failed;
      continue;
    }
    rows.push_back({text(x), text(y), text(panel), text(*algorithm), text(servers), text(placement), *time});
  }
  return rows;
}

/// Place of a value among those of an axis; new ones are added.
std::size_t place(std::vector<std::string>& values, const std::string& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found == values.end()) values.push_back(value);
  return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin());
}

/// Also of hierarchical_parameter_server.
bool is_server(const MapRow& row) { return row.algorithm.ends_with("parameter_server"); }

/// Keeps the shorter time.
void improve(std::optional<Seconds>& best, Seconds time) { best = best ? std::min(*best, time) : time; }

void enter(MapCell& cell, const MapRow& row) {
  if (is_server(row)) {
    const bool dedicated = row.placement == "dedicated";
    const bool one = row.servers.empty() || row.servers == "1";
    improve(!dedicated ? cell.colocated : one ? cell.one : cell.several, row.time);
    return;
  }
  if (row.algorithm == "ring") improve(cell.ring, row.time);
  improve(cell.all_reduce, row.time);
}

std::optional<double> quotient(const std::optional<Seconds>& servers, const std::optional<Seconds>& other) {
  return servers && other ? std::optional(*servers / *other) : std::nullopt;
}

constexpr std::size_t against_all_reduce = 3;  // in the list below
constexpr std::array<MapBand, 4> all_bands = {
    {{"One dedicated server against a ring", [](const MapCell& c) { return quotient(c.one, c.ring); }},
     {"Several dedicated servers against a ring", [](const MapCell& c) { return quotient(c.several, c.ring); }},
     {"Servers on the workers’ machines against a ring",
      [](const MapCell& c) { return quotient(c.colocated, c.ring); }},
     {"The best servers against the best all-reduce",
      [](const MapCell& c) { return quotient(c.servers(), c.all_reduce); }}}};

/// Cells by whether the servers' time over the other's is below, near or above one, and the extremes.
struct Shares {
  std::size_t faster = 0, equal = 0, slower = 0;
  double least = 0.0, most = 0.0;
};

Shares shares_of(const MapPanel& panel, const MapBand& band) {
  Shares shares;
  for (const MapCell& cell : panel.cells) {
    const std::optional<double> value = band.ratio(cell);
    if (!value) continue;
    shares.least = shares.least > 0.0 ? std::min(shares.least, *value) : *value;
    shares.most = std::max(shares.most, *value);
    const int verdict = verdict_of(*value);
    ++(verdict < 0 ? shares.faster : verdict > 0 ? shares.slower : shares.equal);
  }
  return shares;
}

std::string shares_table(const MapFigure& figure, const MapBand& band) {
  TextTable table(std::string(6, 'r'), {figure.panel.title, "servers faster", "within 5 %", "slower", "least", "most"});
  for (const MapPanel& panel : figure.panels) {
    const Shares s = shares_of(panel, band);
    table.add_row({panel.label, std::to_string(s.faster), std::to_string(s.equal), std::to_string(s.slower),
                   plain_number(s.least) + " x", plain_number(s.most) + " x"});
  }
  return table.text(2);
}

/// For each x, the largest y up to which the servers are faster, one row per panel.
std::string border_table(const MapFigure& figure, const MapBand& band) {
  const std::size_t columns = figure.x.labels.size();
  std::vector<std::string> header = {figure.panel.title};
  header.insert(header.end(), figure.x.labels.begin(), figure.x.labels.end());
  TextTable table(std::string(header.size(), 'r'), header);
  for (const MapPanel& panel : figure.panels) {
    std::vector<std::string> row = {panel.label};
    for (std::size_t x = 0; x < columns; ++x) {
      std::string largest = "-";
      for (std::size_t y = 0; y < figure.y.labels.size(); ++y) {
        const std::optional<double> value = band.ratio(panel.at(x, y, columns));
        if (value && verdict_of(*value) < 0) largest = figure.y.labels[y];
      }
      row.push_back(largest);
    }
    table.add_row(row);
  }
  return table.text(2);
}

}  // namespace

std::optional<Seconds> MapCell::servers() const {
  std::optional<Seconds> best;
  for (const std::optional<Seconds>& time : {one, several, colocated}) {
    if (time) improve(best, *time);
  }
  return best;
}

std::vector<MapBand> MapFigure::bands() const {
  std::vector<MapBand> result;
  for (const MapBand& band : all_bands) {
    if (&band == &all_bands[against_all_reduce] && algorithms.size() < 2) continue;  // the same as against the ring
    const bool known = std::any_of(panels.begin(), panels.end(), [&](const MapPanel& member) {
      return std::any_of(member.cells.begin(), member.cells.end(),
                         [&](const MapCell& c) { return band.ratio(c).has_value(); });
    });
    if (known) result.push_back(band);
  }
  return result;
}

MapFigure map_figure(const std::vector<CsvTable>& tables, const MapKeys& wanted) {
  MapFigure figure;
  const MapKeys keys = chosen_keys(tables, wanted);
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
  if (std::find(figure.algorithms.begin(), figure.algorithms.end(), "ring") == figure.algorithms.end()) {
    throw UsageError("plot map: no row has the algorithm ring, which the servers are compared with; sweep it too");
  }
  figure.x = axis_of(keys.x, xs);
  figure.y = axis_of(keys.y, ys);
  figure.panel = axis_of(keys.panels, panels);
  for (const std::string& label : figure.panel.labels) {
    figure.panels.push_back({label, std::vector<MapCell>(xs.size() * ys.size())});
  }
  for (const MapRow& row : rows) {
    enter(figure.panels[place(panels, row.panel)].cells[place(ys, row.y) * xs.size() + place(xs, row.x)], row);
  }
  return figure;
}

std::string to_text(const MapFigure& figure) {
  std::string text = fmt::format("When does a parameter server win? {} predictions\n", figure.predictions);
  for (const MapBand& band : figure.bands()) {
    text += fmt::format(
        "\n{}: cells, and the time of the servers ÷ the other\n\n{}\n  Up to which {} the servers are "
        "faster, by {}\n\n{}",
        band.title, shares_table(figure, band), figure.y.title, figure.x.title, border_table(figure, band));
  }
  return text;
}

}  // namespace foretrain
