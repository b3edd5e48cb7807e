#include "reports/cli/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/format.hpp"
#include "model/base/words.hpp"
#include "reports/print/table.hpp"
#include "reports/result/csv.hpp"

namespace foretrain {

namespace {

bool number_of_cell(std::string_view text, double& number) {
  const std::optional<double> value = magnitude(text);
  number = value.value_or(0.0);
  return value.has_value();
}

std::string last_word(const std::string& column) { return column.substr(column.rfind('.') + 1); }

/// The rows with every column twice: as it is, by its place ("cell0"), and as a number where it is one, by its name and
/// the last word of that where no other column has it.
std::string named_rows(const SweepStore& store) {
  std::map<std::string, int> last_words;
  for (const std::string& column : store.columns()) ++last_words[last_word(column)];
  std::string text = "(SELECT row, outcome";
  for (std::size_t i = 0; i < store.columns().size(); ++i) {
    const std::string& column = store.columns()[i];
    const bool is_text = kind_of_column(column) == CellKind::text;
    const std::string value = is_text ? fmt::format("value({})", sql_name(column)) : sql_name(column);
    text += fmt::format(", {} AS cell{}, {} AS {}", sql_name(column), i, value, sql_name(column));
    const std::string word = last_word(column);
    const bool own = word != column && last_words[word] == 1 && word != "row" && word != "outcome";
    if (own) text += fmt::format(", {} AS {}", value, sql_name(word));
  }
  return text + " FROM rows)";
}

/// The expression with whole names of columns in quotes, as SQL wants names with dots; texts in quotes stay.
std::string with_quoted_names(const std::string& expression, const SweepStore& store) {
  std::string result, word;
  char quote = '\0';
  const auto finish_word = [&] {
    const bool known = std::ranges::find(store.columns(), word) != store.columns().end();
    result += known ? sql_name(word) : word;
    word.clear();
  };
  for (const char c : expression) {
    const bool in_name = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    if (quote == '\0' && in_name) {
      word += c;
      continue;
    }
    finish_word();
    result += c;
    if (quote == c) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    }
  }
  finish_word();
  return result;
}

std::string order_of(const std::string& sort, const SweepStore& store) {
  const bool falling = sort.starts_with('-');
  const std::string by = "(" + with_quoted_names(sort.substr(falling ? 1 : 0), store) + ")";
  return fmt::format("{} IS NULL, {}{}, ", by, by, falling ? " DESC" : "");
}

/// The wanted columns of the selected rows. `order`: where the selection has none.
std::string query_of(const SweepStore& store, const Selection& selection, const std::vector<std::string>& columns,
                     const std::string& order = "") {
  std::string text;
  for (const std::string& column : columns) {
    const auto place = std::ranges::find(store.columns(), column) - store.columns().begin();
    text += fmt::format("{}cell{}", text.empty() ? "SELECT " : ", ", place);
  }
  text += " FROM " + named_rows(store) + " WHERE 1";
  if (selection.skip_impossible) text += " AND outcome <> 'bad_input'";
  if (!selection.where.empty()) text += " AND (" + with_quoted_names(selection.where, store) + ")";
  text += " ORDER BY " + (selection.sort.empty() ? order : order_of(selection.sort, store)) + "row";
  if (selection.top > 0) text += fmt::format(" LIMIT {}", selection.top);
  return text;
}

/// What SQLite refused, as the option's mistake where there is one.
[[noreturn]] void refuse(const SweepStore& store, const Selection& selection, const DatabaseError& error) {
  if (selection.where.empty() && selection.sort.empty()) store.refuse(error);
  if (error.interrupted()) {
    throw UsageError(
        "--where, --sort: this takes longer than comparing numbers and texts of each row; write less of it");
  }
  throw UsageError(
      fmt::format("--where, --sort: {}; write for example --where 'fits AND mfu > 0.4' --sort "
                  "-samples_per_second, with names of columns such as {}",
                  error.what(), fmt::join(store.columns(), ", ")));
}

/// The wanted columns of the rows that a selection leaves. Throws UsageError, also where a row is asked for.
class Selected {
 public:
  Selected(SweepStore& store, const Selection& selection, const std::vector<std::string>& columns,
           const std::string& order = "")
      : store_(store), selection_(selection), statement_(prepared(columns, order)) {}

  bool step() {
    try {
      return statement_.step();
    } catch (const DatabaseError& error) {
      refuse(store_, selection_, error);
    }
  }
  [[nodiscard]] const Statement& row() const { return statement_; }

 private:
  Statement prepared(const std::vector<std::string>& columns, const std::string& order) {
    constexpr std::int64_t steps_of_row = 100'000, steps_of_few = 10'000'000;
    store_.database().add_function("value", number_of_cell);
    try {
      const auto rows = static_cast<std::int64_t>(store_.rows());
      return store_.database().prepare_bounded(query_of(store_, selection_, columns, order),
                                               rows * steps_of_row + steps_of_few);
    } catch (const DatabaseError& error) {
      refuse(store_, selection_, error);
    }
  }

  SweepStore& store_;
  const Selection& selection_;
  Statement statement_;
};

std::string cell_text(const Statement& row, int place, CellKind kind) {
  if (row.is_null(place)) return "";
  if (kind == CellKind::number) return fmt::format("{}", row.number(place));
  if (kind == CellKind::flag) return row.integer(place) != 0 ? "true" : "false";
  return row.text(place);
}

std::string csv_record(const Statement& row, const std::vector<std::string>& columns) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    cells.push_back(cell_text(row, static_cast<int>(i), kind_of_column(columns[i])));
  }
  return csv_line(cells) + "\n";
}

/// Numbers are numbers, an empty cell is null, everything else a text.
std::string json_record(const Statement& row, const std::vector<std::string>& columns) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const int place = static_cast<int>(i);
    const CellKind kind = kind_of_column(columns[i]);
    const std::string text = row.text(place);
    auto& cell = object[columns[i]];
    if (row.is_null(place) || text.empty()) continue;
    if (kind == CellKind::flag) {
      cell = row.integer(place) != 0;
    } else if (kind == CellKind::number) {
      if (std::isfinite(row.number(place))) cell = row.number(place);
    } else {
      const auto number = nlohmann::ordered_json::parse(text, nullptr, false);
      cell = number.is_number() && columns[i] != "case" ? number : nlohmann::ordered_json(text);
    }
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Without numbers and without the place: what reasons of several rows have in common.
std::string kind_of_reason(const std::string& why) {
  const std::size_t place = why.find(": ");
  std::string text;
  for (const char c : place == std::string::npos ? why : why.substr(place + 2)) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
      text += c;
    } else if (!text.ends_with('#')) {
      text += '#';
    }
  }
  return text;
}

/// What best_rows() shows of a prediction, where any row has it.
struct ShownColumn {
  const char *column, *title;
  std::string (*words)(double value);
};
constexpr ShownColumn shown_columns[] = {
    {"predicted.step_time_s", "step", [](double v) { return format_seconds(Seconds(v)); }},
    {"predicted.time_s", "time", [](double v) { return format_seconds(Seconds(v)); }},
    {"predicted.samples_per_second", "samples/s", [](double v) { return format_count(v); }},
    {"predicted.mfu", "MFU", [](double v) { return format_percent(v); }},
    {"predicted.bus_bandwidth_bytes_per_second", "bus", [](double v) { return format_bandwidth(BytesPerSecond(v)); }},
    {"predicted.memory_per_gpu_bytes", "memory", [](double v) { return format_bytes(Bytes(v)); }},
    {"predicted.fits", "fits", [](double v) { return std::string(v != 0.0 ? "yes" : "no"); }},
    {"predicted.time_to_train_s", "training", [](double v) { return format_seconds(Seconds(v)); }},
    {"predicted.cost_usd", "cost, USD", [](double v) { return format_count(v); }},
    {"predicted.goodput", "goodput", [](double v) { return format_percent(v); }}};

}  // namespace

void add_selection(CLI::App& command, Selection& selection) {
  command
      .add_option("--where", selection.where,
                  "only rows of which this holds: SQL over columns, such as 'fits AND mfu > 0.4'")
      ->type_name("EXPRESSION");
  command.add_option("--sort", selection.sort, "by this column, least first; -COLUMN: greatest first")
      ->type_name("[-]COLUMN");
  command.add_option("--top", selection.top, "only the first N of them")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000'000).description(""));
  command.add_flag("--skip-impossible", selection.skip_impossible,
                   "leave out rows whose scenario cannot be, and do not count them as failures");
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
      if (more) piece += json ? json_record(rows.row(), columns) : csv_record(rows.row(), columns);
    }
    return piece;
  });
}

std::string best_rows(SweepStore& store, const Selection& selection, const std::vector<std::string>& varied) {
  constexpr std::size_t usually = 10;
  const std::string fastest_first =
      "\"predicted.fits\" IS 0, \"predicted.samples_per_second\" DESC, \"predicted.time_s\", ";
  Selection few = selection;
  few.where = fmt::format("{}outcome = 'answer'", selection.where.empty() ? "" : "(" + selection.where + ") AND ");
  if (few.top == 0) few.top = usually;
  std::vector<std::string> columns = varied;
  for (const ShownColumn& one : shown_columns) columns.emplace_back(one.column);
  Selected selected(store, few, columns, fastest_first);
  const Statement& rows = selected.row();
  std::vector<std::vector<std::string>> lines;
  while (selected.step()) {
    std::vector<std::string>& line = lines.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const int place = static_cast<int>(i);
      const bool predicted = i >= varied.size() && !rows.is_null(place);
      line.push_back(predicted ? shown_columns[i - varied.size()].words(rows.number(place)) : rows.text(place));
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
  return table.text(page_indent);
}

std::vector<std::string> reasons(SweepStore& store, Reply::Kind kind) {
  constexpr std::size_t most = 12;
  struct Reason {
    std::size_t rows = 0;
    std::string example;
  };
  std::map<std::string, Reason> found;
  try {
    Statement rows = store.database().prepare("SELECT \"predicted.error\" FROM rows WHERE outcome = ? ORDER BY row");
    rows.bind(0, name(kind));
    while (rows.step()) {
      Reason& reason = found[kind_of_reason(rows.text(0))];
      if (reason.rows++ == 0) reason.example = rows.text(0);
    }
  } catch (const DatabaseError& error) {
    store.refuse(error);
  }
  std::vector<Reason> all;
  for (auto& [key, reason] : found) all.push_back(std::move(reason));
  std::ranges::stable_sort(all, std::ranges::greater{}, &Reason::rows);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    lines.push_back(fmt::format("{} × {}", all[i].rows, all[i].example));
  }
  if (all.size() > most) lines.push_back(fmt::format("and {} other reasons", all.size() - most));
  return lines;
}

}  // namespace foretrain
