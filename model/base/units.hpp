// Quantities as people write them: a number, an optional space, a unit ("25 MB", "200 Gbit/s", "5us", "312 TFLOP/s").
// SI prefixes are powers of ten, KiB … TiB powers of two; a bit is spelt `bit`, a byte `B`, but Gbps is read as Gbit/s.
// Nothing is guessed: a missing unit, a unit of another dimension, a negative or infinite number is an error that says
// what to write instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// A text that is no quantity of the wanted dimension. Carries no position: the caller, who knows it, adds it.
class UnitError : public std::runtime_error {
 public:
  UnitError(std::string got, std::string expected);
  [[nodiscard]] const std::string& got() const { return got_; }            ///< the problem
  [[nodiscard]] const std::string& expected() const { return expected_; }  ///< the remedy

 private:
  std::string got_, expected_;
};

/// A quantity as written, before its unit is looked up.
struct NumberAndUnit {
  double number = 0.0;
  std::string unit;  ///< empty when there is none
};

/// Splits "25 MB" into 25 and "MB". Throws UnitError unless the text starts with a finite decimal number ≥ 0.
NumberAndUnit split_number_and_unit(std::string_view text);

/// "15.5": a finite number ≥ 0 without unit. Throws UnitError.
double parse_number(std::string_view text);

/// "128": a whole number from minimum to maximum, digits only. Throws UnitError.
std::int64_t parse_integer(std::string_view text, std::int64_t minimum, std::int64_t maximum);

/// "true" or "false". Throws UnitError.
bool parse_flag(std::string_view text);

/// The place of a word among those known. Throws UnitError with the nearest of them.
std::size_t parse_word(std::string_view text, std::span<const std::string_view> known);

/// Parses a quantity of dimension Q (≥ 0). Instantiated for Seconds (ns us ms s min h day), Bytes (B, bit and
/// multiples), BytesPerSecond, Hertz, Flops and FlopsPerSecond (FLOP/s). Throws UnitError.
template <typename Q>
Q parse_quantity(std::string_view text);

/// "400 W" → 400. Throws UnitError.
double parse_watts(std::string_view text);

/// "10000 km" → 1e7. Throws UnitError.
double parse_metres(std::string_view text);

/// "2.5 USD/GPU/hour" → 2.5. Throws UnitError.
double parse_usd_per_gpu_hour(std::string_view text);

/// A dimension and all its units.
struct UnitFamily {
  std::string what;  ///< "a bandwidth"
  std::vector<std::string> units;
};
/// The family of one of its units; of "%" and others that only some keys have, the unit alone.
UnitFamily family_of(std::string_view unit);

/// The factor of "k", "million", "B" or "T" before a count; nothing for other words.
std::optional<double> multiple_of(std::string_view word);

/// A length of training: "300 billion tokens", "15T tokens", "1281167 images", "90 epochs of 1281167 images".
struct TrainingLength {
  enum class Unit { tokens, samples };
  double count = 0.0;
  Unit unit = Unit::samples;
};
TrainingLength parse_training_length(std::string_view text);

/// Any supported quantity in base units (s, B, B/s, Hz, FLOP, FLOP/s, W) for a row of a table that names its unit, e.g.
/// parse_in_unit("6.5 us", "us") → 6.5. Throws UnitError when the dimensions differ.
double parse_in_unit(std::string_view text, std::string_view unit);
/// The reverse: "6.5 us".
std::string write_in_unit(double value, std::string_view unit);

}  // namespace foretrain
