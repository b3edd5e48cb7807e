// Texts in memory that processes share.
#pragma once

#include <array>
#include <string>

namespace foretrain::gpu {

/// A text of a fixed size, cut off where it is longer.
using ShortText = std::array<char, 512>;

inline ShortText short_text(const std::string& text) {
  ShortText cut = {};
  text.copy(cut.data(), cut.size() - 1);
  return cut;
}

}  // namespace foretrain::gpu
