// Tables that a sweep wrote.
#include <algorithm>

#include "model/base/error.hpp"
#include "reports/page/page_json.hpp"
#include "reports/result/csv.hpp"
#include "reports/studies/server_map.hpp"

namespace foretrain {

namespace {

PageJson number_of(const std::string& cell) {
  const std::optional<double> number = cell.empty() ? std::nullopt : magnitude(cell);
  return number ? PageJson(*number) : PageJson(nullptr);
}

PageJson value_of_cell(const std::string& cell, CellKind kind) {
  if (kind == CellKind::number) return number_of(cell);
  if (cell.empty()) return nullptr;
  return kind == CellKind::flag ? PageJson(cell == "true") : PageJson(cell);
}

/// Nothing where the table compares no servers with rings, or has no two keys that vary.
PageJson map_json(const CsvTable& table) {
  try {
    Figure figure = to_figure(map_figure({table}, {}));
    if (figure.panels.empty()) return nullptr;
    figure.panels.pop_back();  // the scale, of which the page tells in words
    std::string band;
    for (Panel& panel : figure.panels) {
      if (!panel.title.empty()) band = panel.title;
      panel.title = band;
    }
    return figure_json(figure);
  } catch (const UsageError&) {
    return nullptr;
  }
}

}  // namespace

PageJson sweep_json(const std::string& name, const CsvTable& table) {
  PageJson json = {{"name", name}, {"rows", table.rows.size()}, {"kept", PageJson::object()}, {"columns", {}}};
  for (std::size_t c = 0; c < table.header.size(); ++c) {
    const std::string& key = table.header[c].text;
    const bool same =
        std::ranges::all_of(table.rows, [&](const CsvRow& row) { return row[c].text == table.rows.front()[c].text; });
    if (same && !table.rows.empty()) {
      if (!table.rows.front()[c].text.empty()) json["kept"][key] = table.rows.front()[c].text;
      if (!key.starts_with("predicted.") || table.rows.front()[c].text.empty()) continue;
    }
    const CellKind kind = kind_of_column(key);
    PageJson column = {{"key", key}, {"values", PageJson::array()}};
    bool quantities = kind == CellKind::text && key != "case";
    for (const CsvRow& row : table.rows) {
      column["values"].push_back(value_of_cell(row[c].text, kind));
      quantities = quantities && magnitude(row[c].text).has_value();
    }
    if (quantities) {
      for (const CsvRow& row : table.rows) column["numbers"].push_back(number_of(row[c].text));
    }
    json["columns"].push_back(std::move(column));
  }
  if (PageJson map = map_json(table); !map.is_null()) json["servers_against_rings"] = std::move(map);
  return json;
}

}  // namespace foretrain
