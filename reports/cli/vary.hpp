// `--vary KEY=VALUES`: which values a key takes in a sweep.
#pragma once

#include <string>
#include <vector>

#include "model/scenario/load/cases.hpp"

namespace foretrain {

/// One key and its values, or several keys that change together: "a,b" and "1:2", "2:4".
struct Variation {
  std::string key;
  std::vector<std::string> values;

  [[nodiscard]] std::vector<std::string> keys() const;
  /// One value for each key.
  [[nodiscard]] std::vector<std::string> values_at(std::size_t place) const;
};

/// Reads "KEY=V1,V2,…" (commas inside brackets, braces and quotes belong to a value), "KEY=A..B" (whole steps of one),
/// "KEY=A..B+N" (steps of N) or "KEY=A..BxN" (each N times the one before). A and B may carry the same unit. Keys that
/// change together have a colon between their values: "KEY,OTHER=V1:W1,V2:W2". Throws UsageError.
Variation parse_variation(const std::string& text);

/// One case per combination, the last key changing fastest, each with `base` as its base and the other overrides
/// ("KEY=VALUE") in force.
class Combinations {
 public:
  /// Throws UsageError for more than a million, and for a key that is given twice.
  Combinations(std::string base, const std::vector<std::string>& overrides, const std::vector<Variation>& variations);

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] Case at(std::size_t number) const;

 private:
  /// What one value of a variation overrides, and what that adds to the row's name.
  struct Choice {
    std::vector<Override> overrides;
    std::string name;
  };
  std::string base_;
  std::vector<Override> common_;
  std::vector<std::vector<Choice>> choices_;  ///< by variation and value
  std::size_t count_ = 1;
};

/// All of them.
std::vector<Case> combinations(const std::string& base, const std::vector<std::string>& overrides,
                               const std::vector<Variation>& variations);

}  // namespace foretrain
