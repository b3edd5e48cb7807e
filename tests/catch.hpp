// Catch2 2 and 3 under one name.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
/// Catch2 2's matcher for a piece of a text.
namespace Catch {
inline auto Contains(const std::string& piece) { return Matchers::ContainsSubstring(piece); }
}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
