#include "model/base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

namespace foretrain {

namespace {

constexpr std::size_t most_columns = 10'000;
constexpr std::size_t most_cells = 4'000'000;

/// Walks over the text and keeps the position (columns count characters, not bytes).
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file) : text_(text), where_{file, 1, 1} {}

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek() const { return done() ? '\n' : text_[at_]; }
  [[nodiscard]] const SourcePosition& where() const { return where_; }

  char take() {
    const char c = text_[at_++];
    const bool continuation_byte = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (c == '\n') {
      ++where_.line;
      where_.column = 1;
    } else if (!continuation_byte) {
      ++where_.column;
    }
    return c;
  }

  /// Steps over a line end ("\n" or "\r\n"); false when there is none here.
  bool take_line_end() {
    if (done()) return true;
    if (text_.substr(at_, 2) == "\r\n") take();
    if (peek() != '\n') return false;
    take();
    return true;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  SourcePosition where_;
};

/// Whether a spreadsheet would compute this cell: it begins as formulas do, and is no number.
bool begins_formula(std::string_view cell) {
  if (cell.empty() || std::string_view("=+-@\t\r").find(cell.front()) == std::string_view::npos) return false;
  const bool sign = cell.front() == '+' || cell.front() == '-';
  if (!sign || cell.size() < 2 || (std::isdigit(static_cast<unsigned char>(cell[1])) == 0 && cell[1] != '.'))
    return true;
  double number = 0.0;
  const char* end = cell.data() + cell.size();
  return std::from_chars(cell.data() + 1, end, number).ptr != end;
}

/// The cell behind its apostrophes, with which a spreadsheet takes what follows for text.
std::string_view behind_apostrophes(std::string_view cell) {
  return cell.substr(std::min(cell.find_first_not_of('\''), cell.size()));
}

/// One apostrophe more in front of what begins a formula, also behind apostrophes of its own: reading takes one away.
std::string neutralised(const std::string& cell) {
  const std::string_view rest = behind_apostrophes(cell);
  const bool marked = rest.size() < cell.size() && begins_formula(rest.substr(0, 1));
  return marked || begins_formula(cell) ? "'" + cell : cell;
}

std::string without_mark(std::string cell) {
  const std::string_view rest = behind_apostrophes(cell);
  if (rest.size() < cell.size() && begins_formula(rest.substr(0, 1))) cell.erase(0, 1);
  return cell;
}

bool ends_cell(const Scanner& scanner) {
  return scanner.done() || scanner.peek() == ',' || scanner.peek() == '\n' || scanner.peek() == '\r';
}

std::string quoted_text(Scanner& scanner) {
  const SourcePosition opening = scanner.where();
  scanner.take();
  std::string text;
  while (true) {
    if (scanner.done())
      throw ScenarioError(opening, "", "this quote is never closed", "a closing \" at the cell's end");
    const char c = scanner.take();
    if (c != '"') {
      text += c;
    } else if (scanner.done() || scanner.peek() != '"') {
      return text;
    } else {
      text += scanner.take();
    }
  }
}

CsvCell read_cell(Scanner& scanner) {
  CsvCell cell{"", scanner.where()};
  if (!scanner.done() && scanner.peek() == '"') {
    cell.text = quoted_text(scanner);
    if (!ends_cell(scanner)) {
      throw ScenarioError(scanner.where(), "", "text behind a closing quote",
                          "a comma or the line's end; write \"\" for a quote");
    }
  } else {
    while (!ends_cell(scanner)) cell.text += scanner.take();
  }
  cell.text = without_mark(std::move(cell.text));
  return cell;
}

CsvRow read_row(Scanner& scanner) {
  CsvRow row;
  while (true) {
    row.push_back(read_cell(scanner));
    if (row.size() > most_columns) {
      throw ScenarioError(row.back().where, "", fmt::format("more than {} cells in one row", most_columns),
                          "a table of reasonable size");
    }
    if (!scanner.done() && scanner.peek() == ',') {
      scanner.take();
      continue;
    }
    if (!scanner.take_line_end()) {
      throw ScenarioError(scanner.where(), "", "a carriage return inside a line", "lines that end in LF or CR LF");
    }
    return row;
  }
}

void check_header(const CsvRow& header) {
  std::map<std::string, SourcePosition> seen;
  for (const CsvCell& cell : header) {
    if (cell.text.empty()) throw ScenarioError(cell.where, "", "a column without name", "a name in every header cell");
    const auto [other, is_new] = seen.emplace(cell.text, cell.where);
    if (!is_new) {
      throw ScenarioError(cell.where, cell.text, "this column appears twice",
                          fmt::format("one column of this name (the first is column {})", other->second.column));
    }
  }
}

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& file) {
  Scanner scanner(text, file);
  CsvTable table;
  while (!scanner.done()) {
    CsvRow row = read_row(scanner);
    if (row.size() == 1 && row.front().text.empty()) continue;
    if (table.header.empty()) {
      check_header(row);
      table.header = std::move(row);
      continue;
    }
    if (row.size() != table.header.size()) {
      throw ScenarioError(row.front().where, "",
                          fmt::format("this row has {} cells, the header {}", row.size(), table.header.size()),
                          "one cell per column (an empty one for no value)");
    }
    table.rows.push_back(std::move(row));
    if (table.rows.size() * table.header.size() > most_cells) {
      throw ScenarioError(table.rows.back().front().where, "", fmt::format("more than {} cells", most_cells),
                          "several smaller tables");
    }
  }
  if (table.header.empty())
    throw ScenarioError({file, 0, 0}, "", "the table is empty", "a header line and rows below it");
  return table;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    const std::string cell = neutralised(cells[i]);
    // A lone empty cell is quoted, or the line would read as blank.
    if (cell.find_first_of(",\"\r\n") == std::string::npos && !(cells.size() == 1 && cell.empty())) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) {
      if (c == '"') line += '"';
      line += c;
    }
    line += '"';
  }
  return line;
}

std::string csv_text(const std::vector<std::string>& header, const std::vector<NamedCells>& rows) {
  std::string text = csv_line(header) + "\n";
  for (const NamedCells& cells : rows) {
    std::vector<std::string> line;
    for (const std::string& column : header) {
      const auto cell = std::ranges::find(cells, column, &NamedCells::value_type::first);
      line.push_back(cell == cells.end() ? "" : cell->second);
    }
    text += csv_line(line) + "\n";
  }
  return text;
}

}  // namespace foretrain
