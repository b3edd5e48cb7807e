// What decides the cells of a sweep, as one number: rows of an earlier run are kept only where it is the same.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "model/base/hash.hpp"

namespace foretrain {

/// A 64-bit FNV-1a hash, piece by piece.
class Fingerprint {
 public:
  void add(std::string_view piece);
  /// Adds the text of every YAML file below a folder, in order of their paths.
  void add_folder(const std::string& folder);
  /// Adds a file's size and date, or nothing when it cannot be seen.
  void add_identity(const std::string& file);
  /// Adds a value of a scenario, and where it names files (or a mapping in it does), their texts and what these name.
  /// Paths begin at `folder` or here.
  void add_value(const std::string& value, const std::string& folder);
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  void add_file(const std::string& file);

  std::uint64_t hash_ = fnv_1a_start;
  std::set<std::string, std::less<>> files_, values_;  ///< that were added
};

}  // namespace foretrain
