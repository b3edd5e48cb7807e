// The output of a sweep on its way: rows as they are finished, so that an interrupted sweep goes on where it stopped.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/hash.hpp"

namespace foretrain {

/// OUT.csv.partial: the table as far as it is finished, in the order in which the rows came, their numbers in a first
/// column whose name says which sweep they belong to. OUT.csv itself appears at the end, in one step, the rows in
/// order.
class SweepFile {
 public:
  /// Opens or continues the partial file of `path`. A partial file of another sweep (another `fingerprint` or header)
  /// is begun anew. Throws UsageError when it cannot be written.
  SweepFile(const std::string& path, std::uint64_t fingerprint, std::vector<std::string> header);

  /// Finished rows by number, those of an earlier run included.
  [[nodiscard]] const std::map<std::size_t, std::vector<std::string>>& rows() const { return rows_; }
  /// Adds a finished row. Throws UsageError when it cannot be written.
  void add(std::size_t number, std::vector<std::string> cells);
  /// Writes OUT.csv and removes the partial file. Throws UsageError.
  void finish();

 private:
  void append(const std::vector<std::string>& cells);

  std::string path_;
  std::string partial_;
  std::vector<std::string> header_;
  std::map<std::size_t, std::vector<std::string>> rows_;
  std::ofstream out_;
};

/// A 64-bit FNV-1a hash of what a sweep depends on, piece by piece.
class Fingerprint {
 public:
  void add(std::string_view piece);
  /// Adds the text of every YAML file below a folder, in order of their paths.
  void add_folder(const std::string& folder);
  /// Adds a file's size and date, or nothing when it cannot be seen.
  void add_identity(const std::string& file);
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = fnv_1a_start;
};

}  // namespace foretrain
