// Integers as floating-point numbers and as indices of containers.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace foretrain {

/// Exact up to 2⁵³.
constexpr double number(std::integral auto value) { return static_cast<double>(value); }

/// `i` must not be negative.
constexpr std::size_t at_index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace foretrain
