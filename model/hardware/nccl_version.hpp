// The collective library of a cluster.
#pragma once

#include <compare>

namespace foretrain {

/// Whose choices of algorithm, protocol and channels hold. Without one, collectives are plain copies: their schedule as
/// written, at what large copies reach over the links, with nothing else.
struct NcclVersion {
  int major = 2, minor = 29;

  [[nodiscard]] constexpr bool none() const { return major == 0; }
  auto operator<=>(const NcclVersion&) const = default;
};

inline constexpr NcclVersion no_nccl{0, 0};

}  // namespace foretrain
