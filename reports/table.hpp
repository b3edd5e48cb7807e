// Tables and bars for terminals. Widths count characters, not bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// Columns of a page of text, those before each of its lines, and those of a bar in it.
inline constexpr int page_width = 96, page_indent = 2, bar_width = 30;

/// Columns of text, two blanks between them, each as wide as its widest cell.
class TextTable {
 public:
  /// One letter per column: l aligns its cells at the left, r at the right.
  explicit TextTable(std::string columns) : columns_(std::move(columns)) {}
  /// With a header and a line under it.
  TextTable(std::string columns, std::vector<std::string> header) : columns_(std::move(columns)) {
    add_row(std::move(header));
    add_rule();
  }

  /// Adds a row; missing cells at its end are empty.
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Adds a line across the table.
  void add_rule() { rows_.emplace_back(); }
  /// Every row as one line, `indent` blanks before it, none after it.
  [[nodiscard]] std::string text(int indent) const;

 private:
  std::string columns_;
  std::vector<std::vector<std::string>> rows_;  ///< an empty row is a rule
};

/// "12.3 %" of 0.123.
std::string percent_text(double share);
/// "+12.3 %" of 0.123: errors carry their sign.
std::string signed_percent(double share);

/// Number of characters of a UTF-8 text, each taken to be one column wide.
std::size_t display_width(std::string_view text);

/// A horizontal bar `fraction` (0 to 1, clamped) of `width` columns long, in eighths of a column; at least the thinnest
/// one where the fraction is not zero.
std::string bar(double fraction, int width);

/// Breaks a text between words into lines of at most `width` columns (longer words stay whole), each but the first
/// preceded by `indent` blanks.
std::string wrap(std::string_view text, int width, int indent);

}  // namespace foretrain
