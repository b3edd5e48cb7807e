// Tables and bars for terminals. Widths count characters, not bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// Columns before each line of a page of text, and those of a bar in it.
inline constexpr int page_indent = 2, bar_width = 30;

/// Columns of a page: 80, unless the program has found a window of another width.
int page_width();
/// Between 40 and 200. Called once, before anything is written.
void set_page_width(int columns);

/// Columns of text, two blanks between them, each as wide as its widest cell. Where that is wider than a page, columns
/// of words are broken into lines, the widest first, those of the first column last; then the table is broken into
/// several, each with the first column.
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
  /// Every row, `indent` blanks before its lines, none after them.
  [[nodiscard]] std::string text(int indent) const;

 private:
  using Widths = std::vector<std::size_t>;
  [[nodiscard]] Widths natural_widths() const;
  [[nodiscard]] Widths fitted_widths(std::size_t room) const;
  /// Columns of words give way, the widest first, as far as words stay whole that are no longer than this.
  [[nodiscard]] Widths shrunk_widths(std::size_t room, std::size_t longest_whole) const;
  [[nodiscard]] std::string text_of(const Widths& widths, int indent) const;
  /// The first column and those from `begin` to `end`.
  [[nodiscard]] TextTable part(std::size_t begin, std::size_t end) const;

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

/// A text in lines of a page, each set in by page_indent; ends in a line end.
std::string paragraph(std::string_view text);

/// "  Step time     44.1 s", longer values wrapped under themselves; ends in a line end.
std::string labelled(std::string_view label, std::string_view value);

}  // namespace foretrain
