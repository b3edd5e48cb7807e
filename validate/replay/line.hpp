// A line of a keyword, perhaps a number, and key=value pairs. What lists its keys once, for a Line, is written by a
// LineWriter and read back by a LineReader. For graph_text.cpp alone.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/quantity.hpp"
#include "validate/replay/graph_text.hpp"

namespace foretrain::replay {

class LineWriter {
 public:
  explicit LineWriter(std::string head) : line_(std::move(head)) {}

  /// In quotation marks, with \" and \\, where it is empty or has other characters than letters, digits and ._-+:/[],
  void text(const char* key, std::string_view value) {
    if (!value.empty() && std::ranges::all_of(value, plain)) return add(key, value);
    std::string quoted = "\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // a line stays a line
    }
    add(key, quoted + '"');
  }
  void place(const char* key, const std::string& value) { text(key, value); }
  void count(const char* key, int value, int /*least*/, int /*highest*/ = 0) { add(key, std::to_string(value)); }
  void all_gpus(const char* key, int value) { add(key, std::to_string(value)); }
  void number(const char* key, double value) {
    std::array<char, 32> text{};
    const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    add(key, {text.data(), static_cast<std::size_t>(end - text.data())});
  }
  void number(const char* key, Seconds value) { number(key, value.value()); }
  void bytes(const char* key, Bytes value, int /*least*/) { add(key, std::to_string(std::llround(value.value()))); }
  void flag(const char* key, bool value) { add(key, value ? "true" : "false"); }
  template <typename Words>
  void one_of(const char* key, const std::string& value, const Words& /*words*/) {
    add(key, value);
  }
  template <typename E, typename Words>
  void one_of(const char* key, E value, const Words& words) {
    add(key, words[static_cast<std::size_t>(value)]);
  }
  void list(const char* key, const std::vector<int>& numbers, int /*most*/) {
    std::string text;
    for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    if (!text.empty()) add(key, text);
  }
  void rest(const std::map<std::string, std::string>& fields) {
    for (const auto& [key, value] : fields) text(key.c_str(), value);
  }
  [[nodiscard]] const std::string& line() const { return line_; }

 private:
  static bool plain(char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || std::string_view("._-+:/[],").find(c) != std::string_view::npos;
  }
  void add(std::string_view key, std::string_view value) { line_.append(" ").append(key).append("=").append(value); }
  std::string line_;
};

/// Each key is taken once; one that is missing, or a value of another form, is a GraphFileError.
class LineReader {
 public:
  static constexpr int most_count = std::numeric_limits<int>::max() - 1;

  /// `where` is "file:line". Throws GraphFileError for a line that is not made so, and for a key given twice.
  LineReader(std::string_view line, std::string where) : where_(std::move(where)) {
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

  [[nodiscard]] const std::string& keyword() const { return keyword_; }
  /// The words behind the keyword that are no pairs.
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  /// GPUs of the graph, for checks of places and collectives.
  void set_gpus(int gpus) { gpus_ = gpus; }

  void text(const char* key, std::string& value) { value = taken(key); }
  /// "cpu", "gpu0", …
  void place(const char* key, std::string& value) {
    value = taken(key);
    const bool gpu = value.starts_with("gpu");
    const std::string number = value.substr(std::min<std::size_t>(3, value.size()));
    const bool digits = number.size() < 5 && number.find_first_not_of("0123456789") == std::string::npos;
    const bool known = digits && (gpu ? !number.empty() && std::stoi(number) < gpus_ : value.starts_with("cpu"));
    if (!known) fail(std::string(key) + "=" + value, "cpu, or gpu0 to gpu" + std::to_string(gpus_ - 1));
  }
  void count(const char* key, int& value, int least, int highest = most_count) {
    value = static_cast<int>(integer(key, least, highest));
  }
  void all_gpus(const char* key, int& value) { count(key, value, gpus_, gpus_); }
  /// Seconds or the like: finite and not negative.
  void number(const char* key, double& value) {
    const std::string text = taken(key);
    if (!read_number(text, value) || !std::isfinite(value) || value < 0.0) {
      fail(std::string(key) + "=" + text, "a finite number from 0 on");
    }
  }
  void number(const char* key, Seconds& value) {
    double seconds = 0.0;
    number(key, seconds);
    value = Seconds(seconds);
  }
  void bytes(const char* key, Bytes& value, int least) {
    constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
    value = Bytes(static_cast<double>(integer(key, least, most_bytes)));
  }
  void flag(const char* key, bool& value) { value = place_of(key, {"true", "false"}) == 0; }
  template <typename Words>
  void one_of(const char* key, std::string& value, const Words& words) {
    value = words[place_of(key, {words.begin(), words.end()})];
  }
  template <typename E, typename Words>
  void one_of(const char* key, E& value, const Words& words) {
    value = static_cast<E>(place_of(key, {words.begin(), words.end()}));
  }
  /// Whole numbers between commas; none where the key is not there.
  void list(const char* key, std::vector<int>& numbers, int most) {
    if (!pairs_.contains(key)) return;
    const std::string value = taken(key);
    for (std::size_t at = 0; at <= value.size();) {
      const std::size_t comma = std::min(value.find(',', at), value.size());
      int number = 0;
      if (!read_number(std::string_view(value).substr(at, comma - at), number) || number < 0 || number > most) {
        fail(std::string(key) + "=" + value,
             most < 0 ? "nothing that is not there yet" : "numbers from 0 to " + std::to_string(most));
      }
      numbers.push_back(number);
      at = comma + 1;
    }
  }
  /// All that is left.
  void rest(std::map<std::string, std::string>& fields) { fields.swap(pairs_); }
  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t most) {
    const std::string value = taken(key);
    std::int64_t number = 0;
    if (!read_number(value, number) || number < least || number > most) {
      fail(key + "=" + value, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return number;
  }
  /// Throws GraphFileError for a key that was not taken.
  void finish() const {
    if (!pairs_.empty()) fail("unknown key " + pairs_.begin()->first, "the keys of version 1");
  }
  [[noreturn]] void fail(const std::string& got, const std::string& expected) const {
    throw GraphFileError(where_ + ": " + (keyword_.empty() ? "" : keyword_ + ": ") + got + "; " + expected);
  }

 private:
  /// The whole text as a number; nothing else may stand there.
  template <typename T>
  static bool read_number(std::string_view text, T& value) {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    return result.ec == std::errc() && result.ptr == end;
  }
  std::string taken(const std::string& key) {
    const auto found = pairs_.extract(key);
    if (found.empty()) fail("no " + key, key + "=…");
    return found.mapped();
  }
  std::size_t place_of(const std::string& key, const std::vector<std::string>& words) {
    const std::string value = taken(key);
    const auto found = std::ranges::find(words, value);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    std::string known;
    for (const std::string& word : words) known += (known.empty() ? "" : " | ") + word;
    fail(key + "=" + value, known);
  }

  std::string where_, keyword_;
  std::vector<std::string> words_;
  std::map<std::string, std::string> pairs_;
  int gpus_ = 1;
};

}  // namespace foretrain::replay
