// The output of a sweep on its way: rows as they are finished, so that an interrupted sweep goes on where it stopped.
#pragma once

#include <cstdint>
#include <fstream>
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

  /// Whether the row is finished, those of an earlier run included.
  [[nodiscard]] bool has(std::size_t number) const { return number < places_.size() && places_[number].length > 0; }
  /// How many are.
  [[nodiscard]] std::size_t rows() const { return rows_; }
  /// How many of them say in their last cell why there is no prediction.
  [[nodiscard]] std::size_t failed() const { return failed_; }
  /// Adds a finished row, its cells as one line of CSV. Throws UsageError when it cannot be written.
  void add(std::size_t number, std::string_view cells);
  /// Writes OUT.csv and removes the partial file. Throws UsageError.
  void finish();

 private:
  /// Where a row's cells lie in the partial file: a million rows are not kept in memory.
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t length = 0;  ///< 0: the row is not there
  };
  std::uint64_t continue_from(const std::vector<std::string>& partial_header);
  bool note_record(const std::string& record, std::uint64_t offset, std::size_t columns);
  void note_row(std::size_t number, std::uint64_t offset, std::string_view cells);
  void append(std::string_view line);

  std::string path_;
  std::string partial_;
  std::vector<std::string> header_;
  std::vector<Place> places_;
  std::size_t rows_ = 0, failed_ = 0;
  std::uint64_t end_ = 0;  ///< of the partial file
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
