#include "reports/cli/vary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/keys/keys.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_values = 100'000;

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
    } else if (c == '[' || c == '{' || c == '(') {
      ++depth;
    } else if (c == ']' || c == '}' || c == ')') {
      --depth;
    }
    values.back() += c;
  }
  for (std::string& value : values) value = std::string(trim(value));
  return values;
}

/// The step of a range from one value to the next.
struct Stride {
  double number = 1.0;
  bool multiplies = false;
};

/// Cuts "x2", "+0.5" or "+1 MB" off the end of a range's upper value; a unit that stands behind the step alone is the
/// value's, too.
Stride take_stride(std::string& upper, const std::string& text) {
  const std::size_t mark = upper.find_last_of("x+");
  if (mark == std::string::npos || upper.find_first_of("0123456789.", mark) == std::string::npos) return {};
  const auto [number, unit] = split_number_and_unit(trim(std::string_view(upper).substr(mark + 1)));
  const Stride stride{number, upper[mark] == 'x'};
  if (!(stride.number > (stride.multiplies ? 1.0 : 0.0))) fail(text, "this step leads nowhere");
  if (stride.multiplies && !unit.empty()) fail(text, "a factor has no unit");
  upper = std::string(trim(std::string_view(upper).substr(0, mark)));
  const std::string own = split_number_and_unit(upper).unit;
  if (own.empty() && !unit.empty()) upper += " " + unit;
  if (!own.empty() && !unit.empty() && own != unit) fail(text, "the step needs the unit of the range");
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

/// Whether it is a column of tables and no key of scenarios.
bool is_column_of_tables(const std::string& key) {
  const std::string_view first = std::string_view(key).substr(0, key.find('.'));
  constexpr std::array<std::string_view, 10> columns = {"case", "base",    "group",    "anchor",    "source",
                                                        "row",  "outcome", "measured", "predicted", "replay"};
  return std::ranges::find(columns, first) != columns.end();
}

/// Labels of a key's values in pictures: numbers and flags by the key's title as well, other words by themselves.
std::string value_words(const std::string& key, const std::string& value) {
  if (sync_choice(key, value)) return sync_words(value);
  const bool bare = value == "true" || value == "false" || value.find_first_of("0123456789") == 0;
  return bare ? fmt::format("{}: {}", keys::title_of(key), value) : spoken(value);
}

void add_new(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

}  // namespace

std::vector<std::string> Variation::keys() const { return split_values(key); }

std::vector<std::string> Variation::values_at(std::size_t place) const {
  return keys().size() == 1 ? std::vector<std::string>{values[place]} : split_values(values[place], ':');
}

Variation parse_variation(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) fail(text, "there is no \"=\"");
  const std::string values(trim(std::string_view(text).substr(equals + 1)));
  Variation variation{std::string(trim(std::string_view(text).substr(0, equals))), {}};
  variation.values = range_values(values, text).value_or(split_values(values));
  const std::vector<std::string> names = variation.keys();
  if (std::ranges::find(names, "") != names.end()) fail(text, names.size() == 1 ? "there is no key" : "a key is empty");
  if (values.empty()) fail(text, "there are no values");
  for (std::size_t i = 0; i < variation.values.size(); ++i) {
    const std::vector<std::string> together = variation.values_at(i);
    if (together.size() != names.size()) {
      fail(text, fmt::format("{} is {} values for {} keys", variation.values[i], together.size(), names.size()));
    }
    if (std::ranges::find(together, "") != together.end()) fail(text, "a value is empty");
  }
  return variation;
}

std::vector<Variation> parse_variations(const std::vector<std::string>& texts) {
  std::vector<Variation> variations;
  std::ranges::transform(texts, std::back_inserter(variations), parse_variation);
  return variations;
}

Combinations::Combinations(std::string base, const std::vector<std::string>& overrides,
                           const std::vector<Variation>& variations, std::size_t most)
    : base_(std::move(base)) {
  std::set<std::string> keys;
  for (const Variation& variation : variations) {
    count_ *= variation.values.size();
    if (count_ > most) throw UsageError(fmt::format("--vary: more than {} combinations", most));
  }
  for (const Variation& variation : variations) {
    for (const std::string& key : variation.keys()) {
      if (is_column_of_tables(key)) fail(key + "=…", key + " is a column of tables, no key of scenarios");
      if (!keys.insert(keys::current_name(to_lower(key))).second) {
        throw UsageError("--vary: " + key + " is given twice");
      }
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
        const Part& part = choice.emplace_back(part_of(names[i], values[i]));
        for (const Override& change : part.overrides) add_new(varied_, change.key);
        if (part.added_machines > 0) add_new(varied_, "cluster.nodes");
      }
    }
  }
}

Combinations::Part Combinations::part_of(const std::string& key, const std::string& value) {
  Part part{key, value, {}};
  const SourcePosition where{fmt::format("--vary {}={}", key, value), 0, 0};
  const std::optional<SyncChoice> choice = sync_choice(key, value);
  if (!choice) {
    part.overrides.push_back({keys::current_name(key), value, where});
    return part;
  }
  for (const auto& [set, text] : choice->settings) part.overrides.push_back({set, text, where});
  part.added_machines = choice->added_machines;
  return part;
}

bool Combinations::counts(const Part& part, const Case& row) {
  return std::ranges::any_of(part.overrides, [&](const Override& change) {
    return std::ranges::find(row.overrides, change.key, &Override::key) != row.overrides.end();
  });
}

std::vector<const Combinations::Part*> Combinations::parts_of(std::size_t number, std::size_t first) const {
  std::vector<const Part*> parts;
  std::size_t left = count_;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    left /= choices_[i].size();
    const Choice& choice = choices_[i][number / left];
    number %= left;
    if (i < first) continue;
    for (const Part& part : choice) parts.push_back(&part);
  }
  return parts;
}

Case Combinations::at(std::size_t number) const {
  Case row;
  row.base = base_;
  row.overrides = common_;
  const std::vector<const Part*> parts = parts_of(number);
  for (const Part* part : parts) {
    row.overrides.insert(row.overrides.end(), part->overrides.begin(), part->overrides.end());
  }
  leave_out_unused(row.overrides);
  int added = 0;
  for (const Part* part : parts) {
    added += part->added_machines;
    if (!counts(*part, row)) continue;
    row.name += fmt::format("{}{}={}", row.name.empty() ? "" : " ", part->key, part->value);
  }
  if (added > 0) add_machines(row, added);
  return row;
}

std::vector<std::size_t> Combinations::distinct() const {
  std::vector<std::size_t> numbers(count_);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  const bool all_count = std::ranges::none_of(
      varied_, [](const std::string& key) { return keys::is_server_key(key.substr(key.find_last_of('.') + 1)); });
  if (all_count) return numbers;
  std::set<std::string> names;
  std::erase_if(numbers, [&](std::size_t number) { return !names.insert(at(number).name).second; });
  return numbers;
}

std::string Combinations::words(std::size_t number, std::size_t first) const {
  const Case row = at(number);
  std::string text;
  for (const Part* part : parts_of(number, first)) {
    if (counts(*part, row)) text += (text.empty() ? "" : ", ") + value_words(part->key, part->value);
  }
  return text;
}

std::string Combinations::first_words(std::size_t number) const {
  std::string text;
  const std::size_t each = count_ / choices_.front().size();
  for (const Part& part : choices_.front()[number / each])
    text += (text.empty() ? "" : ", ") + value_words(part.key, part.value);
  return text;
}

std::vector<std::string> Combinations::columns() const {
  std::vector<std::string> columns;
  for (const Override& change : common_) columns.push_back(change.key);
  for (const std::string& key : varied_) add_new(columns, key);
  return columns;
}

}  // namespace foretrain
