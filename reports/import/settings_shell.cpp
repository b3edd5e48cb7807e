#include "reports/import/settings.hpp"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>

namespace foretrain {

namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// A text that is read from left to right.
struct Cursor {
  std::string_view text;
  std::size_t at = 0;
  [[nodiscard]] bool done() const { return at >= text.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  bool take(std::string_view word) {
    if (!text.substr(at).starts_with(word)) return false;
    at += word.size();
    return true;
  }
  std::string_view name() {
    const std::size_t start = at;
    while (is_name(peek())) ++at;
    return text.substr(start, at - start);
  }
};

/// $(( … )) over whole numbers and variables: SQLite divides them as shells do. Nothing where it is more than that.
std::optional<std::int64_t> arithmetic(std::string_view text, const Variables& variables) {
  std::string expression;
  for (Cursor in{text}; !in.done();) {
    const bool braces = in.take("${"), dollar = braces || in.take("$");
    const std::string_view word = in.name();
    if (word.empty()) {
      if (dollar || std::string_view("+-*/%() \t\n").find(in.peek()) == std::string_view::npos) return std::nullopt;
      expression += {in.text[in.at++], ' '};  // of two signs without a blank a comment would begin
      continue;
    }
    const auto variable = variables.find(word);
    const std::string_view digits = variable == variables.end() ? word : std::string_view(variable->second);
    const bool number = digits.find_first_not_of("0123456789") == std::string_view::npos;
    if ((braces && !in.take("}")) || digits.empty() || !number) return std::nullopt;
    expression += digits;
  }
  try {
    const SQLite::Database calculator(":memory:");
    SQLite::Statement query(calculator, "SELECT " + expression);
    query.executeStep();
    const SQLite::Column result = query.getColumn(0);
    if (result.isInteger()) return result.getInt64();  // larger numbers are no integers
  } catch (const SQLite::Exception&) {
    // No arithmetic.
  }
  return std::nullopt;
}

/// The end of what brackets enclose that open at `open`; npos where they do not close, or only far away.
std::size_t closing(std::string_view text, std::size_t open, char left, char right) {
  constexpr std::size_t far = 10'000;
  int depth = 0;
  for (std::size_t i = open; i < std::min(text.size(), open + far); ++i) {
    if (text[i] == left) ++depth;
    if (text[i] == right && --depth == 0) return i;
  }
  return std::string_view::npos;
}

/// "1" without its quotes: those of a default go, as those of any word do.
std::string_view without_quotes(std::string_view word) {
  const bool quoted = word.size() >= 2 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front();
  return quoted ? word.substr(1, word.size() - 2) : word;
}

/// Expands a "$": the value if it is known, else the text itself.
std::string expand(Cursor& in, const Variables& variables) {
  const std::size_t start = in.at;
  const auto as_written = [&] { return std::string(in.text.substr(start, in.at - start)); };
  if (in.take("$((") || in.take("$(")) {
    const bool computes = in.text[in.at - 2] == '(';
    const std::size_t end = closing(in.text, start + 1, '(', ')');
    if (end == std::string_view::npos) return as_written();
    in.at = end + 1;
    if (!computes || end < start + 4) return as_written();
    const auto value = arithmetic(in.text.substr(start + 3, end - start - 4), variables);
    return value ? std::to_string(*value) : as_written();
  }
  if (in.take("${")) {
    const std::string_view name = in.name();
    std::string_view otherwise;
    if (const std::size_t end = closing(in.text, start + 1, '{', '}'); end != std::string_view::npos) {
      otherwise = in.text.substr(in.at, end - in.at);
      in.at = end + 1;
    }
    if (const auto known = variables.find(name); known != variables.end()) return known->second;
    const bool has_default = otherwise.starts_with(":-") || otherwise.starts_with(":=");
    return has_default ? std::string(without_quotes(otherwise.substr(2))) : as_written();
  }
  ++in.at;
  const auto known = variables.find(in.name());
  return known == variables.end() ? as_written() : known->second;
}

class Script {
 public:
  Script(std::string_view text, std::string file, int depth = 0) : in_{text}, file_(std::move(file)), depth_(depth) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  std::vector<ForeignSetting> settings() && {
    while (!in_.done()) read_next();
    end_option();
    return std::move(settings_);
  }

 private:
  void read_next() {
    const char c = in_.peek();
    if (in_.take("\\\r\n") || in_.take("\\\n")) return;
    if (c == '#') return read_comment();
    if (c == '\n' || c == ';' || c == '&' || c == '|' || c == ')') {
      end_option();
      ++in_.at;
    } else if (c == '(' || std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++in_.at;
    } else {
      const std::size_t start = in_.at;
      use_word(read_word(), start);
    }
  }

  /// `#SBATCH --nodes=4` says something; any other comment does not.
  void read_comment() {
    end_option();
    const std::size_t start = in_.at;
    const std::size_t end = std::min(in_.text.find('\n', start), in_.text.size());
    in_.at = end;
    constexpr std::string_view mark = "#SBATCH ";
    const std::string_view line = in_.text.substr(start, end - start);
    if (!line.starts_with(mark)) return;
    Script inner(line.substr(mark.size()), file_, depth_ + 1);
    for (ForeignSetting& setting : std::move(inner).settings()) {
      settings_.push_back({"#SBATCH " + setting.key, setting.value, place(start)});
    }
  }

  /// Words without quotes and quoted pieces, one behind the other, variables put in.
  std::string read_word() {
    std::string word;
    const std::size_t start = in_.at;
    std::size_t opened = start;
    char quote = '\0';
    for (; !in_.done(); require_short(word, start)) {
      const char c = in_.peek();
      const bool ends = std::isspace(static_cast<unsigned char>(c)) != 0 || std::string_view(";&|()").find(c) < 5;
      if (quote == '\0' && (ends || in_.take("\\\r\n") || in_.take("\\\n"))) break;
      if (c == quote || (quote == '\0' && (c == '"' || c == '\''))) {
        quote = c == quote ? '\0' : c;
        opened = in_.at++;
      } else if (c == '$' && quote != '\'') {
        word += expand(in_, variables_);
      } else {
        if (c == '\\' && quote != '\'' && in_.at + 1 < in_.text.size()) ++in_.at;
        word += in_.text[in_.at++];
      }
    }
    if (quote != '\0') throw ScenarioError(place(opened), "", "a quote that is not closed", "a closing quote");
    return word;
  }

  void use_word(const std::string& word, std::size_t start) {
    if (word.empty()) return;
    if (word.starts_with("--")) {
      end_option();
      const std::size_t equals = word.find('=');
      option_ = ForeignSetting{word.substr(0, equals), "", place(start)};
      if (equals != std::string::npos) take_value(word.substr(equals + 1));
      return;
    }
    if (option_) return take_value(word);
    Cursor name{word};
    const std::string variable(name.name());
    const bool assigns = !variable.empty() && name.take("=") && std::isdigit(static_cast<unsigned char>(word[0])) == 0;
    if (!assigns) {
      // Megatron takes one word for all layers, or one for each.
      ForeignSetting* const last = settings_.empty() ? nullptr : &settings_.back();
      const bool of_a_layer = word == "p2p" || word == "a2a" || word == "all_gather" || word == "a2a+p2p";
      if (of_a_layer && last != nullptr && last->key == "--cp-comm-type" && last->value != word) {
        last->value += " " + word;
      }
      // bash -c "torchrun … --num-layers 24"
      const bool commands = word.find(' ') != std::string::npos && word.find("--") != std::string::npos;
      if (commands && depth_ <= deepest) read_options_in(word, start);
      return;
    }
    const std::string value = word.substr(name.at);
    // A string of options ("--num-layers 24 …") is read where it is assigned; where it is used, nothing is left of it.
    if (value.find("--") == std::string::npos || depth_ > deepest) {
      variables_[variable] = value;
      return;
    }
    variables_[variable] = "";
    read_options_in(value, start);
  }

  /// Places inside a quoted string are those of the words as they are written there.
  void read_options_in(const std::string& value, std::size_t start) {
    std::string plain = value;
    for (char& c : plain) c = c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '\\' ? ' ' : c;
    Script inner(plain, file_, depth_ + 1);
    inner.variables_ = variables_;
    std::size_t from = start;
    for (ForeignSetting& setting : std::move(inner).settings()) {
      const std::size_t found = in_.text.find(setting.key, from);
      if (found != std::string_view::npos && found < in_.at) from = found;
      settings_.push_back({setting.key, setting.value, place(from)});
    }
  }

  void take_value(std::string value) {
    option_->value = std::move(value);
    end_option();
  }

  void end_option() {
    if (option_) settings_.push_back(std::move(*option_));
    option_.reset();
  }

  /// Variables that stand for themselves twice grow without bound.
  void require_short(const std::string& word, std::size_t start) const {
    constexpr std::size_t longest = 100'000;
    if (word.size() > longest) throw ScenarioError(place(start), "", "a word of 100,000 characters", "a shorter one");
  }

  [[nodiscard]] SourcePosition place(std::size_t offset) const {
    const auto behind = std::ranges::upper_bound(line_starts_, offset);
    const std::size_t line_start = *std::prev(behind);
    return {file_, static_cast<int>(behind - line_starts_.begin()), static_cast<int>(offset - line_start) + 1};
  }

  static constexpr int deepest = 3;  ///< strings of options inside of others

  Cursor in_;
  std::string file_;
  int depth_;
  std::vector<std::size_t> line_starts_ = {0};
  Variables variables_;
  std::optional<ForeignSetting> option_;  ///< its value may follow
  std::vector<ForeignSetting> settings_;
};

}  // namespace

std::vector<ForeignSetting> shell_arguments(std::string_view text, const std::string& file) {
  return Script(text, file).settings();
}

}  // namespace foretrain
