#include "validate/replay/fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "validate/replay/graph_text.hpp"

namespace foretrain::replay {

namespace {

bool plain(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("._-+:/[],").find(c) != std::string_view::npos;
}

/// The whole text as a number; nothing else may stand there.
template <typename T>
bool read_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

std::string quoted(std::string_view value) {
  if (!value.empty() && std::all_of(value.begin(), value.end(), plain)) return std::string(value);
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // a line stays a line
  }
  return text + '"';
}

Fields::Fields(std::string_view line, std::string where) : where_(std::move(where)) {
  std::size_t at = 0;
  const auto word = [&](bool value) {
    std::string text;
    if (value && at < line.size() && line[at] == '"') {
      for (++at; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && ++at == line.size()) break;
        text += line[at];
      }
      if (at >= line.size()) fail("a quotation that does not end", "a quotation mark at its end");
      ++at;
      if (at < line.size() && line[at] != ' ') fail("a quotation that goes on", "a blank behind it");
      return text;
    }
    while (at < line.size() && line[at] != ' ' && (value || line[at] != '=')) text += line[at++];
    return text;
  };
  while (at < line.size()) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    std::string key = word(false);
    if (at < line.size() && line[at] == '=') {
      ++at;
      if (keyword_.empty() || key.empty()) fail("a value without a name", "keyword key=value …");
      if (!pairs_.emplace(key, word(true)).second) fail("the key " + key + " twice", "each key once");
    } else if (keyword_.empty()) {
      keyword_ = std::move(key);
    } else {
      words_.push_back(std::move(key));
    }
  }
}

void Fields::fail(const std::string& got, const std::string& expected) const {
  throw GraphFileError(where_ + ": " + (keyword_.empty() ? "" : keyword_ + ": ") + got + "; " + expected);
}

std::string Fields::text(const std::string& key) {
  const auto found = pairs_.find(key);
  if (found == pairs_.end()) fail("no " + key, key + "=…");
  std::string value = std::move(found->second);
  pairs_.erase(found);
  return value;
}

std::string Fields::one_of(const std::string& key, const std::vector<std::string>& words) {
  std::string value = text(key);
  if (std::find(words.begin(), words.end(), value) != words.end()) return value;
  std::string known;
  for (const std::string& word : words) known += (known.empty() ? "" : " | ") + word;
  fail(key + "=" + value, known);
}

bool Fields::flag(const std::string& key) { return one_of(key, {"true", "false"}) == "true"; }

std::int64_t Fields::integer(const std::string& key, std::int64_t least, std::int64_t most) {
  const std::string value = text(key);
  std::int64_t number = 0;
  if (!read_number(value, number) || number < least || number > most) {
    fail(key + "=" + value, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

double Fields::number(const std::string& key) {
  const std::string value = text(key);
  double number = 0.0;
  if (!read_number(value, number) || !std::isfinite(number) || number < 0.0) {
    fail(key + "=" + value, "a finite number from 0 on");
  }
  return number;
}

std::vector<int> Fields::list(const std::string& key, int most) {
  std::vector<int> numbers;
  const auto found = pairs_.find(key);
  if (found == pairs_.end()) return numbers;
  const std::string value = std::move(found->second);
  pairs_.erase(found);
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t comma = std::min(value.find(',', at), value.size());
    int number = 0;
    if (!read_number(std::string_view(value).substr(at, comma - at), number) || number < 0 || number > most) {
      fail(key + "=" + value, most < 0 ? "nothing that is not there yet" : "numbers from 0 to " + std::to_string(most));
    }
    numbers.push_back(number);
    at = comma + 1;
  }
  return numbers;
}

std::map<std::string, std::string> Fields::rest() { return std::exchange(pairs_, {}); }

void Fields::finish() const {
  if (!pairs_.empty()) fail("unknown key " + pairs_.begin()->first, "the keys of version 1");
}

}  // namespace foretrain::replay
