// Shared by all harnesses: input may be refused by the errors that it should be refused with, and by no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/base/error.hpp"

namespace foretrain::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the program where libFuzzer sees it.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// False where the text is refused as wrong input is. Every other exception ends the program.
template <class Work>
bool accepted(Work work) {
  try {
    work();
    return true;
  } catch (const ScenarioError&) {
    return false;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace foretrain::fuzz
