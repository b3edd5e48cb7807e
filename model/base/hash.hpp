// Hashes and pseudorandom numbers that are the same on every machine. They protect against nothing: texts with equal
// hashes are easily made.
#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace foretrain
