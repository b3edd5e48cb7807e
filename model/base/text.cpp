#include "model/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <ranges>

namespace foretrain {

namespace {
constexpr std::string_view blanks = " \t\r\n";

/// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other (optimal string
/// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

constexpr std::string_view hexadecimal = "0123456789abcdef";

bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/// Whether a character of several bytes is one that text may not hold: U+0080 to U+009F are control characters, U+FFFE
/// and U+FFFF no characters at all; U+202A to U+202E and U+2066 to U+2069 make what follows look like something else.
bool is_forbidden(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  if (character.starts_with("\xE2\x80")) return last >= 0xAA && last <= 0xAE;
  if (character.starts_with("\xE2\x81")) return last >= 0xA6 && last <= 0xA9;
  return (character[0] == '\xC2' && last < 0xA0) || character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
}

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::optional<int> number_behind(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return std::nullopt;
  int value = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, status] = std::from_chars(name.data() + prefix.size(), end, value);
  if (status != std::errc() || rest != end || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (const auto piece : std::views::split(text, separator)) pieces.emplace_back(piece.begin(), piece.end());
  if (text.empty()) pieces.emplace_back();
  return pieces;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t start = text.find_first_not_of(blanks); start != std::string_view::npos;
       start = text.find_first_not_of(blanks, start)) {
    const std::size_t end = std::min(text.find_first_of(blanks, start), text.size());
    words.emplace_back(text.substr(start, end - start));
    start = end;
  }
  return words;
}

std::string or_list(const std::vector<std::string>& words, std::size_t limit) {
  std::string text;
  const std::size_t shown = std::min(limit, words.size());
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  if (shown < words.size()) text += ", …";
  return text;
}

std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  const bool needs_none = !text.empty() && text.find_first_not_of(plain) == std::string_view::npos;
  return needs_none ? std::string(text) : shell_quoted(text);
}

std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest_name = 200;  // the time grows with the length of both
  std::optional<std::string> best;
  if (word.size() > longest_name) return best;
  const std::string lower = to_lower(word);
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(lower, to_lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(const std::optional<std::string>& likely, std::string otherwise) {
  return likely ? "did you mean " + *likely + "?" : std::move(otherwise);
}

std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return (lead >= 0x20 && lead != 0x7F) || lead == '\t' || lead == '\n' || lead == '\r' ? 1 : 0;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return 0;
  // The second byte decides what the lead alone leaves open: overlong forms, surrogates, and beyond U+10FFFF.
  const unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(at + 1) < least || byte(at + 1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (!continues(byte(at + i))) return 0;
  }
  return is_forbidden(text.substr(at, length)) ? 0 : length;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\r' ? 0 : character_length(text, at);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(text[at++]);
      shown += {'\\', 'x', hexadecimal[byte >> 4], hexadecimal[byte & 0xF]};
    } else {
      shown += text.substr(at, length);
      at += length;
    }
  }
  return shown;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t head = most * 3 / 4;
  std::size_t tail = text.size() - (most - head);
  while (head > 0 && continues(static_cast<unsigned char>(text[head]))) --head;
  while (tail < text.size() && continues(static_cast<unsigned char>(text[tail]))) ++tail;
  return std::string(text.substr(0, head)).append(" … ").append(text.substr(tail));
}

}  // namespace foretrain
