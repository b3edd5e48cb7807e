#include "reports/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "model/base/text.hpp"

namespace foretrain {

namespace {
constexpr std::size_t column_gap = 2;

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
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string TextTable::text(int indent) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths.at(i) = std::max(widths[i], display_width(row[i]));
  }
  const std::size_t total = std::accumulate(widths.begin(), widths.end(), column_gap * (widths.size() - 1));
  std::string text;
  for (const auto& row : rows_) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    if (row.empty()) line += repeat("─", total);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - display_width(row[i]), ' ');
      if (i > 0) line.append(column_gap, ' ');
      line += columns_[i] == 'r' ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
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

}  // namespace foretrain
