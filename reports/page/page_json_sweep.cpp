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
    const MapFigure map = map_figure({table}, {});
    PageJson json;
    for (const auto& [key, axis] : {std::pair("x", &map.x), std::pair("y", &map.y)}) {
      json[key] = {{"title", axis->title}, {"labels", axis->labels}};
    }
    json["panel"] = map.panel.title;
    for (const MapBand& band : map.bands()) {
      for (const MapPanel& panel : map.panels) {
        PageJson one = {{"compares", band.title}, {"label", panel.label}};
        for (const MapCell& cell : panel.cells) {
          const std::optional<double> ratio = band.ratio(cell);
          one["ratio"].push_back(ratio ? PageJson(*ratio) : PageJson(nullptr));
        }
        json["panels"].push_back(std::move(one));
      }
    }
    return json;
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
