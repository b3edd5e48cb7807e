// Hashes and pseudorandom numbers that are the same on every machine. They protect against nothing: texts with equal
// hashes are easily made.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <type_traits>

namespace foretrain {

/// FNV-1a, 64 bits (Fowler, Noll and Vo). A text in several pieces: each with the hash of those before it.
inline constexpr std::uint64_t fnv_1a_start = 0xcbf29ce484222325ULL;
inline constexpr std::uint64_t fnv_1a_prime = 0x100000001b3ULL;
constexpr std::uint64_t fnv_1a(std::string_view text, std::uint64_t hash = fnv_1a_start) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * fnv_1a_prime;
  return hash;
}

/// SplitMix64: the next number, `state` moves on by a constant (Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
inline constexpr std::uint64_t split_mix_step = 0x9e3779b97f4a7c15ULL;
constexpr std::uint64_t split_mix(std::uint64_t& state) {
  state += split_mix_step;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

/// A hash of a number: sums of such hashes tell sets of numbers apart, in whatever order they are added.
constexpr std::uint64_t summable_hash(std::uint64_t number) {
  std::uint64_t state = number * split_mix_step;
  return split_mix(state);
}

/// A hash of several things, one after the other: numbers, words of enumerations, quantities, texts, lists of these.
/// For looking up what is then compared: equal things have equal hashes.
template <typename... Things>
constexpr std::uint64_t hash_of(const Things&... things) {
  std::uint64_t hash = fnv_1a_start;
  const auto add = [&hash](const auto& self, const auto& thing) -> void {
    using Thing = std::remove_cvref_t<decltype(thing)>;
    if constexpr (std::integral<Thing> || std::is_enum_v<Thing>) {
      hash = (std::rotl(hash, 5) ^ static_cast<std::uint64_t>(thing)) * split_mix_step;
    } else if constexpr (std::floating_point<Thing>) {
      self(self, std::bit_cast<std::uint64_t>(static_cast<double>(thing) + 0.0));  // −0 is equal to 0
    } else if constexpr (std::convertible_to<Thing, std::string_view>) {
      self(self, fnv_1a(thing));
    } else if constexpr (std::ranges::range<Thing>) {
      for (const auto& part : thing) self(self, part);
      self(self, std::ranges::distance(thing));
    } else {
      self(self, thing.value());
    }
  };
  (add(add, things), ...);
  return hash;
}

}  // namespace foretrain
