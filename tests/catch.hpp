// Catch2 2 and 3 under one name.
#pragma once
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
