#include "model/base/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "model/base/text.hpp"

namespace foretrain {

namespace {

enum class Dimension { time, size, bandwidth, frequency, work, rate, power, price, length };

struct DimensionInfo {
  std::string_view name;     ///< with article
  std::string_view example;  ///< units to offer, the commonest first
};
constexpr DimensionInfo dimensions[] = {{"a time", "us, ms, s"},
                                        {"a size", "MB, MiB, GB"},
                                        {"a bandwidth", "GB/s, Gbit/s"},
                                        {"a frequency", "MHz, GHz"},
                                        {"an amount of work", "GFLOP, TFLOP"},
                                        {"a computing rate", "GFLOP/s, TFLOP/s"},
                                        {"a power", "W, kW"},
                                        {"a price", "USD/GPU/hour"},
                                        {"a length", "m, km"}};
const DimensionInfo& info(Dimension d) { return dimensions[static_cast<std::size_t>(d)]; }

/// No quantity of this house is larger, or smaller without being zero, in base units; the bounds keep products and
/// ratios of several quantities finite.
constexpr double largest_quantity = 1e24;
constexpr double smallest_quantity = 1e-24;

bool too_small(double value) { return value > 0.0 && value < smallest_quantity; }

struct Unit {
  Dimension dimension;
  double factor;  ///< to base units
};

struct Prefix {
  std::string_view symbol;
  double factor;
};
constexpr Prefix si_prefixes[] = {{"", 1.0}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};
constexpr Prefix binary_prefixes[] = {
    {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}, {"Pi", 1125899906842624.0}};

struct PrefixedBase {
  std::string_view symbol;
  Dimension dimension;
  double factor;
  bool binary_prefixes;
};
constexpr PrefixedBase prefixed_bases[] = {
    {"B", Dimension::size, 1.0, true},        {"bit", Dimension::size, 0.125, false},
    {"B/s", Dimension::bandwidth, 1.0, true}, {"bit/s", Dimension::bandwidth, 0.125, false},
    {"FLOP", Dimension::work, 1.0, false},    {"FLOP/s", Dimension::rate, 1.0, false},
    {"Hz", Dimension::frequency, 1.0, false}};

struct PlainUnit {
  std::string_view symbol;
  Dimension dimension;
  double factor;
};
constexpr PlainUnit plain_units[] = {
    {"ns", Dimension::time, 1e-9},           {"us", Dimension::time, 1e-6},        {"µs", Dimension::time, 1e-6},
    {"ms", Dimension::time, 1e-3},           {"s", Dimension::time, 1.0},          {"min", Dimension::time, 60.0},
    {"h", Dimension::time, 3600.0},          {"day", Dimension::time, 86400.0},    {"days", Dimension::time, 86400.0},
    {"d", Dimension::time, 86400.0},         {"week", Dimension::time, 604800.0},  {"weeks", Dimension::time, 604800.0},
    {"w", Dimension::time, 604800.0},        {"W", Dimension::power, 1.0},         {"kW", Dimension::power, 1e3},
    {"USD/GPU/hour", Dimension::price, 1.0}, {"USD/GPU/h", Dimension::price, 1.0}, {"m", Dimension::length, 1.0},
    {"km", Dimension::length, 1e3}};

/// Every unit, spelt out once.
const std::vector<std::pair<std::string, Unit>>& unit_table() {
  static const auto table = [] {
    std::vector<std::pair<std::string, Unit>> units;
    for (const auto& [symbol, dimension, factor] : plain_units) units.emplace_back(symbol, Unit{dimension, factor});
    for (const PrefixedBase& base : prefixed_bases) {
      const auto add = [&](const Prefix& prefix) {
        units.emplace_back(fmt::format("{}{}", prefix.symbol, base.symbol),
                           Unit{base.dimension, prefix.factor * base.factor});
      };
      for (const Prefix& prefix : si_prefixes) add(prefix);
      if (base.binary_prefixes) {
        for (const Prefix& prefix : binary_prefixes) add(prefix);
      }
    }
    return units;
  }();
  return table;
}

std::optional<Unit> find_unit(std::string_view symbol) {
  constexpr std::string_view per_second = "bps";  // bits, wherever networks are sold
  if (symbol.ends_with(per_second)) {
    return find_unit(fmt::format("{}bit/s", symbol.substr(0, symbol.size() - per_second.size())));
  }
  for (const auto& [name, unit] : unit_table()) {
    if (name == symbol) return unit;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(std::string_view text, std::string_view wrong, std::string expected) {
  throw UnitError(fmt::format("\"{}\" {}", trim(text), wrong), std::move(expected));
}

bool starts_number(char c) { return (c >= '0' && c <= '9') || c == '.'; }

/// The spelling we know that a foreign or sloppy one stands for ("Gbps" → "Gbit/s", "TFLOPS" → "TFLOP/s"); empty when
/// nothing comes near.
std::string known_spelling(const std::string& unit, Dimension wanted) {
  const bool wants_rate = wanted == Dimension::bandwidth || wanted == Dimension::rate;
  constexpr std::pair<std::string_view, std::string_view> endings[] = {
      {"bps", "bit/s"},   {"bits/s", "bit/s"}, {"b/s", "bit/s"},    {"Bps", "B/s"},        {"Bytes/s", "B/s"},
      {"bytes/s", "B/s"}, {"FLOPS", "FLOP/s"}, {"FLOPs", "FLOP/s"}, {"FLOPs/s", "FLOP/s"}, {"flops", "FLOP/s"},
      {"bytes", "B"},     {"bits", "bit"},     {"b", "bit"},        {"sec", "s"}};
  for (const auto& [ending, right] : endings) {
    if (!unit.ends_with(ending)) continue;
    std::string spelling = fmt::format("{}{}", unit.substr(0, unit.size() - ending.size()), right);
    const std::optional<Unit> found = find_unit(spelling);
    if (found && (found->dimension == wanted || !wants_rate)) return spelling;
  }
  std::vector<std::string> candidates;
  for (const auto& [name, known] : unit_table()) {
    if (known.dimension == wanted) candidates.push_back(name);
  }
  return nearest_word(unit, candidates).value_or("");
}

std::string write_instead(std::string_view number, Dimension wanted) {
  std::vector<std::string> choices;
  for (const std::string& unit : split(info(wanted).example, ',')) {
    choices.push_back(fmt::format("\"{} {}\"", number, trim(unit)));
  }
  return fmt::format("write {}", or_list(choices));
}

/// For a unit of another dimension that differs only by "/s".
std::string with_matching_unit(std::string_view number, const std::string& unit, Dimension wanted) {
  const std::string other = unit.ends_with("/s") ? unit.substr(0, unit.size() - 2) : unit + "/s";
  const std::optional<Unit> found = find_unit(other);
  const bool sure = wanted != Dimension::bandwidth;  // "200 GB" may stand for 200 Gbit/s
  if (!found || found->dimension != wanted || !sure) return write_instead(number, wanted);
  return fmt::format("write \"{} {}\"", number, other);
}

double parse(std::string_view text, Dimension wanted) {
  const NumberAndUnit parts = split_number_and_unit(text);
  const std::string_view number = trim(text.substr(0, text.size() - parts.unit.size()));
  if (parts.unit.empty()) refuse(text, "has no unit", write_instead(number, wanted));
  const std::optional<Unit> unit = find_unit(parts.unit);
  if (!unit) {
    const std::string near = known_spelling(parts.unit, wanted);
    throw UnitError(fmt::format("unknown unit \"{}\"", parts.unit),
                    near.empty() ? write_instead(number, wanted) : fmt::format("write \"{} {}\"", number, near));
  }
  if (unit->dimension != wanted) {
    throw UnitError(fmt::format("\"{}\" is {}, not {}", trim(text), info(unit->dimension).name, info(wanted).name),
                    with_matching_unit(number, parts.unit, wanted));
  }
  const double value = parts.number * unit->factor;
  if (!(value <= largest_quantity)) {
    refuse(text, "is too large", fmt::format("{} below {:g} base units", info(wanted).name, largest_quantity));
  }
  if (too_small(value)) {
    refuse(text, "is too small", fmt::format("{} from {:g} base units on", info(wanted).name, smallest_quantity));
  }
  return value;
}

constexpr Dimension dimension_of(Seconds) { return Dimension::time; }
constexpr Dimension dimension_of(Bytes) { return Dimension::size; }
constexpr Dimension dimension_of(BytesPerSecond) { return Dimension::bandwidth; }
constexpr Dimension dimension_of(Hertz) { return Dimension::frequency; }
constexpr Dimension dimension_of(Flops) { return Dimension::work; }
constexpr Dimension dimension_of(FlopsPerSecond) { return Dimension::rate; }

}  // namespace

UnitError::UnitError(std::string got, std::string expected)
    : std::runtime_error(got + "; " + expected), got_(std::move(got)), expected_(std::move(expected)) {}

NumberAndUnit split_number_and_unit(std::string_view text) {
  const std::string_view trimmed = trim(text);
  if (trimmed.empty()) throw UnitError("empty value", "a number");
  const std::string lower = to_lower(trimmed);
  for (const std::string_view special : {"nan", ".nan", "inf", ".inf", "+inf", "-inf", "-.inf", "infinity"}) {
    if (lower == special || lower.starts_with(std::string(special) + " ")) {
      refuse(text, "is not a finite number", "a finite number that is not negative");
    }
  }
  if (trimmed.front() == '-') refuse(text, "is negative", "a number that is not negative");
  if (!starts_number(trimmed.front())) refuse(text, "is not a number", "a decimal number such as 2.5 or 1e6");
  NumberAndUnit result;
  const char* const end = trimmed.data() + trimmed.size();
  const auto [rest, status] = std::from_chars(trimmed.data(), end, result.number);
  if (status == std::errc::result_out_of_range) refuse(text, "is outside the range of numbers", "a number below 1e24");
  if (status != std::errc()) refuse(text, "is not a number", "a decimal number such as 2.5 or 1e6");
  result.unit = trim(std::string_view(rest, static_cast<std::size_t>(end - rest)));
  if (!result.unit.empty() &&
      (starts_number(result.unit.front()) || result.unit.front() == ',' || result.unit.front() == '_')) {
    refuse(text, "is not one number", "digits without separators, such as 1024");
  }
  return result;
}

double parse_number(std::string_view text) {
  const NumberAndUnit parts = split_number_and_unit(text);
  if (!parts.unit.empty()) {
    refuse(text, "is not a plain number", fmt::format("a number without unit, such as {}", parts.number));
  }
  if (parts.number > largest_quantity) refuse(text, "is too large", "less than 1e24");
  if (too_small(parts.number)) refuse(text, "is too small", "0, or at least 1e-24");
  return parts.number;
}

std::int64_t parse_integer(std::string_view text, std::int64_t minimum, std::int64_t maximum) {
  const std::string_view trimmed = trim(text);
  const auto range = [&] {
    return maximum == std::numeric_limits<std::int64_t>::max()
               ? fmt::format("an integer, at least {}", minimum)
               : fmt::format("an integer from {} to {}", minimum, maximum);
  };
  std::int64_t value = 0;
  const char* const end = trimmed.data() + trimmed.size();
  const auto [rest, status] = std::from_chars(trimmed.data(), end, value);
  if (status == std::errc::result_out_of_range) refuse(text, "is too large", range());
  if (status != std::errc() || rest != end) refuse(text, "is not an integer", range());
  if (value < minimum || value > maximum) throw UnitError(fmt::format("{} is out of range", value), range());
  return value;
}

template <typename Q>
Q parse_quantity(std::string_view text) {
  return Q(parse(text, dimension_of(Q())));
}
template Seconds parse_quantity<Seconds>(std::string_view);
template Bytes parse_quantity<Bytes>(std::string_view);
template BytesPerSecond parse_quantity<BytesPerSecond>(std::string_view);
template Hertz parse_quantity<Hertz>(std::string_view);
template Flops parse_quantity<Flops>(std::string_view);
template FlopsPerSecond parse_quantity<FlopsPerSecond>(std::string_view);

bool parse_flag(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  refuse(text, "is neither true nor false", "true or false");
}

std::size_t parse_word(std::string_view text, std::span<const std::string_view> known) {
  const auto found = std::ranges::find(known, text);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  const std::vector<std::string> words(known.begin(), known.end());
  const std::optional<std::string> nearest = nearest_word(text, words);
  throw UnitError(fmt::format("unknown value \"{}\"", text),
                  nearest ? fmt::format("did you mean {}? Known are {}", *nearest, or_list(words)) : or_list(words));
}

double parse_watts(std::string_view text) { return parse(text, Dimension::power); }

double parse_metres(std::string_view text) { return parse(text, Dimension::length); }

double parse_usd_per_gpu_hour(std::string_view text) { return parse(text, Dimension::price); }

std::optional<double> multiple_of(std::string_view word) {
  constexpr Prefix multiples[] = {{"k", 1e3}, {"K", 1e3}, {"thousand", 1e3}, {"M", 1e6},  {"million", 1e6},
                                  {"G", 1e9}, {"B", 1e9}, {"billion", 1e9},  {"T", 1e12}, {"trillion", 1e12}};
  const auto* const known = std::ranges::find(multiples, word, &Prefix::symbol);
  return known != std::end(multiples) ? std::optional(known->factor) : std::nullopt;
}

TrainingLength parse_training_length(std::string_view text) {
  const std::string grammar =
      "write for example \"300 billion tokens\", \"50000 samples\" or \"90 epochs of 1281167 images\"";
  NumberAndUnit parts = split_number_and_unit(text);
  std::vector<std::string> words = split_words(parts.unit);
  double factor = 1.0;
  if (words.size() >= 3 && (words[0] == "epochs" || words[0] == "epoch") && words[1] == "of") {
    factor = parts.number;
    const std::size_t dataset = text.find(" of ") + 4;
    parts = split_number_and_unit(text.substr(dataset));
    words = split_words(parts.unit);
  }
  const std::optional<double> multiple = words.empty() ? std::nullopt : multiple_of(words[0]);
  if (words.size() == 2 && multiple) {
    factor *= *multiple;
    words.erase(words.begin());
  } else if (words.size() != 1 || multiple) {
    refuse(text, "is not a length of training", grammar);
  }
  TrainingLength length{parts.number * factor, TrainingLength::Unit::samples};
  if (words[0] == "tokens") {
    length.unit = TrainingLength::Unit::tokens;
  } else if (words[0] != "samples" && words[0] != "images" && words[0] != "sequences") {
    throw UnitError(fmt::format("unknown unit \"{}\"", words[0]), grammar);
  }
  if (!(length.count > 0.0) || length.count > largest_quantity) {
    refuse(text, "is no sensible length of training", grammar);
  }
  return length;
}

UnitFamily family_of(std::string_view unit) {
  const std::optional<Unit> known = find_unit(unit);
  if (!known) return {unit == "%" ? "a share" : "a figure of the core's clock", {std::string(unit)}};
  UnitFamily family{std::string(info(known->dimension).name), {}};
  for (const auto& [name, other] : unit_table()) {
    if (other.dimension == known->dimension) family.units.push_back(name);
  }
  return family;
}

double parse_in_unit(std::string_view text, std::string_view unit) {
  const std::optional<Unit> wanted = find_unit(unit);
  if (!wanted) throw UnitError(fmt::format("unknown unit \"{}\"", unit), "a unit of the table");
  return parse(text, wanted->dimension) / wanted->factor;
}

std::string write_in_unit(double value, std::string_view unit) {
  const std::optional<Unit> known = find_unit(unit);
  return std::isinf(value) ? "unlimited" : fmt::format("{:.10g} {}", value / (known ? known->factor : 1.0), unit);
}

}  // namespace foretrain
