#include "reports/cli/sweep_table.hpp"

#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/cli/options.hpp"
#include "reports/print/table.hpp"
#include "reports/result/csv.hpp"

namespace foretrain {

namespace {

/// The function value() of queries: a quantity as its number, anything else as it is.
void value_of_cell(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(arguments[0]));
  const std::optional<double> number = text == nullptr ? std::nullopt : magnitude(text);
  number ? sqlite3_result_double(context, *number) : sqlite3_result_value(context, arguments[0]);
}

std::string last_word(const std::string& column) { return column.substr(column.rfind('.') + 1); }

/// Names of a column in queries, by its name and by the last word of that where no other column has it.
std::map<std::string, std::string> names_in_queries(const SweepStore& store) {
  std::map<std::string, std::string> names;
  std::map<std::string, int> last_words = {{"row", 1}, {"outcome", 1}};
  for (const std::string& column : store.columns()) ++last_words[last_word(column)];
  for (const std::string& column : store.columns()) {
    const bool is_text = kind_of_column(column) == CellKind::text;
    names[column] = is_text ? fmt::format("value({})", sql_name(column)) : sql_name(column);
    if (last_words[last_word(column)] == 1) names.try_emplace(last_word(column), names[column]);
  }
  return names;
}

/// The expression with names as SQL wants them; texts in quotes stay. Throws UsageError for several of them.
std::string with_names(const std::string& expression, const std::map<std::string, std::string>& names) {
  std::string result, word;
  char quote = '\0';
  const auto finish_word = [&] {
    const auto known = names.find(keys::current_name(word));
    result += known == names.end() ? word : known->second;
    word.clear();
  };
  for (const char c : expression) {
    const bool in_name = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    if (quote == '\0' && in_name) {
      word += c;
      continue;
    }
    finish_word();
    if (quote == '\0' && c == ';') throw UsageError("--where, --sort: one expression, without \";\"");
    result += c;
    if (quote == c) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    }
  }
  finish_word();
  return "(" + result + "\n)";  // a comment ends with its line
}

/// The wanted columns of the selected rows. `order`: where the selection has none.
std::string query_of(const SweepStore& store, const Selection& selection, const std::vector<std::string>& columns,
                     const std::string& order) {
  const std::map<std::string, std::string> names = names_in_queries(store);
  std::string text;
  for (const std::string& column : columns) text += (text.empty() ? "SELECT " : ", ") + sql_name(column);
  text += " FROM rows WHERE 1";
  if (selection.skip_impossible) text += " AND outcome <> 'bad_input'";
  if (!selection.where.empty()) text += " AND " + with_names(selection.where, names);
  text += " ORDER BY " + order;
  if (!selection.sort.empty()) {
    const bool falling = selection.sort.starts_with('-');
    const std::string by = with_names(selection.sort.substr(falling ? 1 : 0), names);
    text += fmt::format("{} IS NULL, {}{}, ", by, by, falling ? " DESC" : "");
  }
  text += "\"row\"";
  if (selection.top > 0) text += fmt::format(" LIMIT {}", selection.top);
  return text;
}

/// The wanted columns of the rows that a selection leaves. Throws UsageError, also where a row is asked for.
class Selected {
 public:
  Selected(SweepStore& store, const Selection& selection, const std::vector<std::string>& columns,
           const std::string& order = "")
      : store_(store), selection_(selection), query_(prepared(columns, selection.sort.empty() ? order : "")) {}

  bool step() {
    try {
      return query_.executeStep();
    } catch (const SQLite::Exception& error) {
      refuse(error);
    }
  }
  [[nodiscard]] SQLite::Column cell(std::size_t place) const { return query_.getColumn(static_cast<int>(place)); }

 private:
  SQLite::Statement prepared(const std::vector<std::string>& columns, const std::string& order) {
    try {
      store_.database().createFunction("value", 1, true, nullptr, value_of_cell);
      return {store_.database(), query_of(store_, selection_, columns, order)};
    } catch (const SQLite::Exception& error) {
      refuse(error);
    }
  }

  /// Reports an error of SQLite as that of the option, if there is one.
  [[noreturn]] void refuse(const SQLite::Exception& error) const {
    if (selection_.where.empty() && selection_.sort.empty()) store_.refuse(error);
    throw UsageError(
        fmt::format("--where, --sort: {}; write for example --where 'fits AND mfu > 0.4' --sort "
                    "-samples_per_second, with names of columns such as {}",
                    error.what(), fmt::join(store_.columns(), ", ")));
  }

  SweepStore& store_;
  const Selection& selection_;
  SQLite::Statement query_;
};

void add_csv_record(const Selected& rows, const std::vector<CellKind>& kinds, std::string& lines) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) lines += ',';
    const SQLite::Column cell = rows.cell(i);
    if (cell.isNull()) continue;
    if (kinds[i] == CellKind::number) {
      fmt::format_to(std::back_inserter(lines), "{}", cell.getDouble());
    } else if (kinds[i] == CellKind::flag) {
      lines += cell.getInt() != 0 ? "true" : "false";
    } else if (const std::string text = cell.getString(); !text.empty()) {
      lines += csv_line({text});
    }
  }
  lines += '\n';
}

/// Numbers are numbers, an empty cell is null, everything else a text.
void add_json_record(const Selected& rows, const std::vector<std::string>& columns, std::string& lines) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const SQLite::Column cell = rows.cell(i);
    const CellKind kind = kind_of_column(columns[i]);
    const std::string text = cell.getString();
    auto& value = object[columns[i]];
    if (text.empty()) continue;
    if (kind == CellKind::flag) {
      value = cell.getInt() != 0;
    } else if (kind == CellKind::number) {
      if (std::isfinite(cell.getDouble())) value = cell.getDouble();
    } else {
      const auto number = nlohmann::ordered_json::parse(text, nullptr, false);
      value = number.is_number() && columns[i] != "case" ? number : nlohmann::ordered_json(text);
    }
  }
  lines += object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// The function kind() of queries: an error without numbers and without its place, which several rows have in common.
void kind_of_reason(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto* const reported = reinterpret_cast<const char*>(sqlite3_value_text(arguments[0]));
  const std::string_view why = reported != nullptr ? reported : "";  // null in a database that others changed
  const std::size_t place = why.find(": ");
  std::string text;
  for (const char c : place == std::string_view::npos ? why : why.substr(place + 2)) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit || !text.ends_with('#')) text += digit ? '#' : c;
  }
  sqlite3_result_text(context, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

/// Columns of best_rows(), if any row has them.
struct ShownColumn {
  const char *column, *title;
  std::string (*words)(double value);
};
constexpr ShownColumn shown_columns[] = {
    {"predicted.step_time_s", "step time", [](double v) { return format_seconds(Seconds(v)); }},
    {"predicted.time_s", "time", [](double v) { return format_seconds(Seconds(v)); }},
    {"predicted.samples_per_second", "samples/s", [](double v) { return format_count(v); }},
    {"predicted.mfu", "MFU", [](double v) { return format_percent(v); }},
    {"predicted.bus_bandwidth_bytes_per_second", "bus bandwidth",
     [](double v) { return format_bandwidth(BytesPerSecond(v)); }},
    {"predicted.memory_per_gpu_bytes", "memory", [](double v) { return format_bytes(Bytes(v)); }},
    {"predicted.fits", "fits", [](double v) { return std::string(v != 0.0 ? "yes" : "no"); }},
    {"predicted.time_to_train_s", "time to train", [](double v) { return format_seconds(Seconds(v)); }},
    {"predicted.cost_usd", "cost, USD", [](double v) { return format_count(v); }},
    {"predicted.goodput", "goodput", [](double v) { return format_percent(v); }}};

}  // namespace

void add_selection(CLI::App& command, Selection& selection) {
  add_text(command, "--where", selection.where, "EXPRESSION",
           "select rows by an SQL condition on columns: 'fits AND mfu > 0.4'");
  add_text(command, "--sort", selection.sort, "[-]COLUMN", "sort by a column, ascending; -COLUMN: descending");
  add_number(command, "--top", selection.top, 1, 100'000'000, "keep the first N rows");
  command.add_flag("--skip-impossible", selection.skip_impossible,
                   "omit infeasible configurations, and do not count them as failures");
}

void check_selection(SweepStore& store, const Selection& selection) {
  const Selected prepared(store, selection, store.columns());
}

void write_table(SweepStore& store, const Selection& selection, const std::string& path) {
  constexpr std::size_t piece_size = 1'000'000;
  const std::vector<std::string>& columns = store.columns();
  const bool json = path.ends_with(".jsonl");
  Selected rows(store, selection, columns);
  std::string piece = json ? "" : csv_line(columns) + "\n";
  bool first = true, more = true;
  write_file(path, [&]() -> std::string_view {
    if (!std::exchange(first, false)) piece.clear();
    while (more && piece.size() < piece_size) {
      more = rows.step();
      if (!more) break;
      json ? add_json_record(rows, columns, piece) : add_csv_record(rows, store.kinds(), piece);
    }
    return piece;
  });
}

std::string best_rows(SweepStore& store, const Selection& selection, const std::vector<std::string>& varied) {
  constexpr std::size_t usually = 10;
  const std::string fastest_first =
      "\"predicted.fits\" IS 0, \"predicted.samples_per_second\" DESC, \"predicted.time_s\", ";
  Selection few = selection;
  few.where = fmt::format("{}outcome = 'answer'", selection.where.empty() ? "" : "(" + selection.where + "\n) AND ");
  if (few.top == 0) few.top = usually;
  std::vector<std::string> columns = varied;
  for (const ShownColumn& one : shown_columns) columns.emplace_back(one.column);
  Selected rows(store, few, columns, fastest_first);
  std::vector<std::vector<std::string>> lines;
  while (rows.step()) {
    std::vector<std::string>& line = lines.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const SQLite::Column cell = rows.cell(i);
      const bool predicted = i >= varied.size() && !cell.isNull();
      line.push_back(predicted ? shown_columns[i - varied.size()].words(cell.getDouble()) : cell.getString());
    }
  }
  if (lines.empty()) return "";
  std::string sides;
  std::vector<std::string> header;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (std::ranges::all_of(lines, [i](const auto& line) { return line[i].empty(); })) continue;
    kept.push_back(i);
    header.push_back(i < varied.size() ? last_word(columns[i]) : shown_columns[i - varied.size()].title);
    sides += i < varied.size() ? 'l' : 'r';
  }
  TextTable table(sides, header);
  for (const std::vector<std::string>& line : lines) {
    std::vector<std::string> cells;
    for (const std::size_t i : kept) cells.push_back(line[i]);
    table.add_row(cells);
  }
  const std::string order = selection.sort.empty() ? "fastest first" : "sorted by " + selection.sort;
  return fmt::format("Best rows, {}\n{}", order, table.text(page_indent));
}

std::vector<std::string> reasons(SweepStore& store, Reply::Kind kind) {
  constexpr std::size_t most = 12;
  std::vector<std::string> lines;
  std::size_t others = 0;
  store.guarded([&] {
    store.database().createFunction("kind", 1, true, nullptr, kind_of_reason);
    SQLite::Statement found(store.database(),
                            "SELECT count(*) AS rows, \"predicted.error\", min(\"row\") FROM rows WHERE outcome = ? "
                            "GROUP BY kind(\"predicted.error\") ORDER BY rows DESC, kind(\"predicted.error\")");
    found.bind(1, std::string(name(kind)));
    while (found.executeStep()) {
      if (lines.size() == most) {
        ++others;
      } else {
        lines.push_back(fmt::format("{} × {}", found.getColumn(0).getInt64(), found.getColumn(1).getString()));
      }
    }
  });
  if (others > 0) lines.push_back(fmt::format("and {} other reasons", others));
  return lines;
}

}  // namespace foretrain
