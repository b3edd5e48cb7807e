#include "reports/print/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/base/text.hpp"

namespace foretrain {

namespace {
constexpr std::size_t column_gap = 2, least_column = 16;

int page_columns = 80;

/// Addresses and names of many parts would make a column wide; bars, cut, would look shorter than they are.
bool may_be_cut(const std::string& word, std::size_t longest_whole) {
  return display_width(word) > longest_whole && word.find("█") == std::string::npos;
}

/// Blanks that set a cell in from those above it.
std::size_t blanks_before(const std::string& cell) { return std::min(cell.find_first_not_of(' '), cell.size()); }

/// Bytes of the part of a word that fits in `room` columns: up to a mark in its second half where there is one.
std::size_t cut_of(const std::string& word, std::size_t room) {
  std::size_t at = 0, behind_mark = 0;
  for (std::size_t column = 1; column <= room && at < word.size(); ++column) {
    at += std::max<std::size_t>(character_length(word, at), 1);
    if (2 * column > room && std::string_view(".=/-").find(word[at - 1]) != std::string_view::npos) behind_mark = at;
  }
  return behind_mark > 0 && at < word.size() ? behind_mark : at;
}

/// A cell in lines of this width, all set in as the cell is, words that are longer cut.
std::vector<std::string> lines_of(const std::string& cell, std::size_t width) {
  const std::string blanks(std::min(blanks_before(cell), width - 1), ' ');
  const std::size_t room = width - blanks.size();
  std::string text;
  for (std::string word : split_words(cell)) {
    while (may_be_cut(word, room)) {
      const std::size_t end = cut_of(word, room);
      text += word.substr(0, end) + ' ';
      word.erase(0, end);
    }
    text += word + ' ';
  }
  std::vector<std::string> lines = split(wrap(text, static_cast<int>(room), 0), '\n');
  for (std::string& line : lines) line.insert(0, blanks);
  return lines;
}

std::size_t total_of(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), column_gap * (widths.size() - 1));
}

std::string repeat(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}
}  // namespace

std::string percent_text(double share) { return fmt::format("{:.1f} %", share * 100.0); }

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", share * 100.0); }

std::size_t display_width(std::string_view text) {
  // Every byte but the continuation bytes 10xxxxxx starts a character.
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

int page_width() { return page_columns; }

void set_page_width(int columns) { page_columns = std::clamp(columns, 40, 200); }

TextTable::Widths TextTable::natural_widths() const {
  Widths widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths.at(i) = std::max(widths[i], display_width(row[i]));
  }
  return widths;
}

TextTable::Widths TextTable::fitted_widths(std::size_t room) const {
  constexpr std::size_t key_with_value = 36;  // stay whole where they can, to be copied
  const Widths widths = shrunk_widths(room, key_with_value);
  return total_of(widths) > room ? shrunk_widths(room, least_column) : widths;
}

TextTable::Widths TextTable::shrunk_widths(std::size_t room, std::size_t longest_whole) const {
  constexpr std::size_t widest_number = 24;
  Widths widths = natural_widths(), words(columns_.size(), least_column);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (const std::string& word : split_words(row[i])) {
        if ((i > 0 || longest_whole == least_column) && may_be_cut(word, longest_whole)) continue;
        words[i] = std::max(words[i], blanks_before(row[i]) + display_width(word));
      }
    }
  }
  while (total_of(widths) > room) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool of_words = columns_[i] == 'l' || widths[i] > widest_number;
      if (!of_words || widths[i] <= words[i]) continue;
      if (widest == columns_.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns_.size()) break;
    const std::size_t excess = total_of(widths) - room;
    widths[widest] = std::max(words[widest], widths[widest] - std::min(excess, widths[widest]));
  }
  return widths;
}

std::string TextTable::text(int indent) const {
  const auto room = static_cast<std::size_t>(std::max(page_width() - indent, 1));
  const Widths widths = fitted_widths(room);
  std::size_t used = widths.front(), end = 1;
  while (end < columns_.size() && (end == 1 || used + column_gap + widths[end] <= room)) {
    used += column_gap + widths[end++];
  }
  if (end == columns_.size()) return text_of(widths, indent);
  return part(1, end).text(indent) + "\n" + part(end, columns_.size()).text(indent);
}

TextTable TextTable::part(std::size_t begin, std::size_t end) const {
  TextTable table(columns_.substr(0, 1) + columns_.substr(begin, end - begin));
  for (const auto& row : rows_) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == 0 || (i >= begin && i < end)) cells.push_back(row[i]);
    }
    table.rows_.push_back(std::move(cells));
  }
  return table;
}

std::string TextTable::text_of(const Widths& widths, int indent) const {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string text;
  for (const auto& row : rows_) {
    if (row.empty()) text += margin + repeat("─", total_of(widths)) + "\n";
    std::vector<std::vector<std::string>> cells;  // each a line or several
    std::size_t height = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool fits = display_width(row[i]) <= widths[i];
      cells.push_back(fits ? std::vector{row[i]} : lines_of(row[i], widths[i]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t k = 0; k < height; ++k) {
      std::string line = margin;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string cell = k < cells[i].size() ? cells[i][k] : "";
        const std::string padding(widths[i] - std::min(widths[i], display_width(cell)), ' ');
        if (i > 0) line.append(column_gap, ' ');
        line += columns_[i] == 'r' ? padding + cell : cell + padding;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  return text;
}

std::string bar(double fraction, int width) {
  static constexpr std::array<std::string_view, 8> eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0.0)) return "";
  const double columns = std::min(fraction, 1.0) * width;
  const auto count = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(columns * 8.0)));
  return repeat("█", count / 8) + std::string(eighths[count % 8]);
}

std::string wrap(std::string_view text, int width, int indent) {
  std::string result;
  std::size_t column = 0;
  for (const std::string& word : split_words(text)) {
    const std::size_t length = display_width(word);
    if (column > 0 && column + 1 + length > static_cast<std::size_t>(width)) {
      result += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = 0;
    } else if (column > 0) {
      result += " ";
      ++column;
    }
    result += word;
    column += length;
  }
  return result;
}

std::string paragraph(std::string_view text) {
  return fmt::format("{:{}}{}\n", "", page_indent, wrap(text, page_width() - page_indent, page_indent));
}

std::string labelled(std::string_view label, std::string_view value) {
  constexpr int label_width = 14;
  const std::size_t length = display_width(label);
  const std::string padding(length < label_width ? label_width - length : 1, ' ');
  return fmt::format("{:{}}{}{}{}\n", "", page_indent, label, padding,
                     wrap(value, page_width() - page_indent - label_width, page_indent + label_width));
}

}  // namespace foretrain
