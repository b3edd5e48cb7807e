#include "reports/cli/vary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_values = 100'000;
constexpr std::size_t most_combinations = 1'000'000;

[[noreturn]] void fail(const std::string& text, const std::string& why) {
  throw UsageError(fmt::format(
      "--vary {}: {}; write KEY=V1,V2,… or KEY=A..B, KEY=A..B+STEP, KEY=A..BxFACTOR, or KEY,OTHER=V1:W1,V2:W2", text,
      why));
}

/// Pieces between separators that stand outside of brackets and quotes.
std::vector<std::string> split_values(const std::string& text, char separator = ',') {
  std::vector<std::string> values = {""};
  int depth = 0;
  char quote = '\0';
  for (const char c : text) {
    if (quote == '\0' && depth == 0 && c == separator) {
      values.emplace_back();
      continue;
    }
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    values.back() += c;
  }
  for (std::string& value : values) value = std::string(trim(value));
  return values;
}

/// How a range goes from one value to the next.
struct Stride {
  double number = 1.0;
  bool multiplies = false;
};

/// Cuts "x2" or "+0.5" off the end of a range's upper value.
Stride take_stride(std::string& upper, const std::string& text) {
  const std::size_t mark = upper.find_last_of("x+");
  const bool has_stride =
      mark != std::string::npos && upper.find_first_not_of("0123456789. ", mark + 1) == std::string::npos;
  if (!has_stride) return {};
  const Stride stride{parse_number(trim(std::string_view(upper).substr(mark + 1))), upper[mark] == 'x'};
  if (!(stride.number > (stride.multiplies ? 1.0 : 0.0))) fail(text, "this step leads nowhere");
  upper = std::string(trim(std::string_view(upper).substr(0, mark)));
  return stride;
}

/// The values of "A..B", or nothing when the text is no range of numbers.
std::optional<std::vector<std::string>> range_values(const std::string& values, const std::string& text) {
  const std::size_t dots = values.find("..");
  if (dots == std::string::npos) return std::nullopt;
  try {
    const NumberAndUnit low = split_number_and_unit(trim(std::string_view(values).substr(0, dots)));
    std::string upper(trim(std::string_view(values).substr(dots + 2)));
    const Stride stride = take_stride(upper, text);
    const NumberAndUnit high = split_number_and_unit(upper);
    if (low.unit != high.unit && !low.unit.empty()) fail(text, "both ends of a range need the same unit");
    if (low.number > high.number) fail(text, "the range ends before it begins");
    if (stride.multiplies && low.number == 0.0) fail(text, "zero times anything stays zero");
    std::vector<std::string> result;
    // Positions are computed anew from the start, so that steps such as 0.1 do not add up their rounding.
    const double tolerance = 1e-9 * high.number;
    double value = low.number;
    for (double factor = 1.0; value <= high.number + tolerance; factor *= stride.number) {
      if (result.size() == most_values) fail(text, fmt::format("more than {} values", most_values));
      result.push_back(fmt::format("{:.12g}{}{}", value, high.unit.empty() ? "" : " ", high.unit));
      value = stride.multiplies ? low.number * factor * stride.number
                                : low.number + stride.number * static_cast<double>(result.size());
    }
    return result;
  } catch (const UnitError&) {
    return std::nullopt;
  }
}

/// What a table of cases has beside the keys of scenarios.
bool is_column_of_tables(const std::string& key) {
  const std::string_view first = std::string_view(key).substr(0, key.find('.'));
  constexpr std::array<std::string_view, 10> columns = {"case", "base",    "group",    "anchor",    "source",
                                                        "row",  "outcome", "measured", "predicted", "replay"};
  return std::ranges::find(columns, first) != columns.end();
}

}  // namespace

std::vector<std::string> Variation::keys() const { return split_values(key); }

std::vector<std::string> Variation::values_at(std::size_t place) const {
  return keys().size() == 1 ? std::vector<std::string>{values[place]} : split_values(values[place], ':');
}

Variation parse_variation(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) fail(text, "there is no \"=\"");
  const std::string key(trim(std::string_view(text).substr(0, equals)));
  const std::string values(trim(std::string_view(text).substr(equals + 1)));
  if (key.empty()) fail(text, "there is no key");
  if (values.empty()) fail(text, "there are no values");
  Variation variation{key, {}};
  if (std::optional<std::vector<std::string>> range = range_values(values, text)) {
    variation.values = std::move(*range);
  } else {
    variation.values = split_values(values);
  }
  const std::vector<std::string> names = variation.keys();
  for (std::size_t i = 0; i < variation.values.size(); ++i) {
    const std::vector<std::string> together = variation.values_at(i);
    if (together.size() != names.size()) {
      fail(text, fmt::format("{} is {} values for {} keys", variation.values[i], together.size(), names.size()));
    }
    for (const std::string& value : together) {
      if (value.empty()) fail(text, "a value is empty");
    }
  }
  for (const std::string& name : names) {
    if (name.empty()) fail(text, "a key is empty");
  }
  return variation;
}

Combinations::Combinations(std::string base, const std::vector<std::string>& overrides,
                           const std::vector<Variation>& variations)
    : base_(std::move(base)) {
  std::set<std::string> keys;
  for (const Variation& variation : variations) {
    count_ *= variation.values.size();
    if (count_ > most_combinations) {
      throw UsageError(fmt::format("--vary: more than {} combinations", most_combinations));
    }
  }
  for (const Variation& variation : variations) {
    for (const std::string& key : variation.keys()) {
      if (is_column_of_tables(key)) fail(key + "=…", key + " is a column of tables, no key of scenarios");
      if (!keys.insert(to_lower(key)).second) throw UsageError("--vary: " + key + " is given twice");
    }
  }
  for (const std::string& text : overrides) {
    common_.push_back(parse_override(text));
    if (!keys.insert(to_lower(common_.back().key)).second) {
      throw UsageError("--set: " + common_.back().key + " is given twice");
    }
  }
  for (const Variation& variation : variations) {
    std::vector<Choice>& choices = choices_.emplace_back();
    const std::vector<std::string> names = variation.keys();
    for (std::size_t place = 0; place < variation.values.size(); ++place) {
      Choice& choice = choices.emplace_back();
      const std::vector<std::string> values = variation.values_at(place);
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string text = fmt::format("{}={}", names[i], values[i]);
        choice.overrides.push_back({names[i], values[i], {"--vary " + text, 0, 0}});
        choice.name += (i > 0 ? " " : "") + text;
      }
    }
  }
}

Case Combinations::at(std::size_t number) const {
  Case row;
  row.base = base_;
  row.overrides = common_;
  std::size_t left = count_;
  for (const std::vector<Choice>& choices : choices_) {
    left /= choices.size();
    const Choice& choice = choices[number / left];
    number %= left;
    row.overrides.insert(row.overrides.end(), choice.overrides.begin(), choice.overrides.end());
    if (!row.name.empty()) row.name += ' ';
    row.name += choice.name;
  }
  return row;
}

std::vector<Case> combinations(const std::string& base, const std::vector<std::string>& overrides,
                               const std::vector<Variation>& variations) {
  const Combinations all(base, overrides, variations);
  std::vector<Case> cases;
  for (std::size_t i = 0; i < all.size(); ++i) cases.push_back(all.at(i));
  return cases;
}

}  // namespace foretrain
