// Catch2 2 and 3 under one name, and beside it what most tests use of the standard library: compiled once for all of
// them. Quantities print their value and unit where an assertion fails.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/quantity.hpp"
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
/// Catch2 2's matchers for a piece of a text, its beginning and its end, and for a regular expression.
namespace Catch {
inline auto Contains(const std::string& piece) { return Matchers::ContainsSubstring(piece); }
inline auto StartsWith(const std::string& beginning) { return Matchers::StartsWith(beginning); }
inline auto EndsWith(const std::string& end) { return Matchers::EndsWith(end); }
inline auto Matches(const std::string& expression) { return Matchers::Matches(expression); }
}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif

/// "0.015 s", "1.6e+10 s^-1 byte".
template <int S, int B, int F>
struct Catch::StringMaker<foretrain::Quantity<S, B, F>> {
  static std::string convert(foretrain::Quantity<S, B, F> quantity) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.17g", quantity.value());
    std::string text = digits;
    const auto add = [&](int exponent, const char* unit) {
      if (exponent == 0) return;
      text += std::string(" ") + unit + (exponent == 1 ? "" : "^" + std::to_string(exponent));
    };
    add(S, "s");
    add(B, "byte");
    add(F, "FLOP");
    return text;
  }
};
