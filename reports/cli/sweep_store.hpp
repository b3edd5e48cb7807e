// The rows of a sweep in an SQLite database: finished ones as they come in, so that an interrupted sweep goes on where
// it stopped, and so that parts of a sweep can be put together.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/cli/sqlite.hpp"
#include "reports/cli/workers.hpp"

namespace foretrain {

/// "2/8": every eighth row, the second first.
struct Shard {
  std::size_t number = 1;
  std::size_t count = 1;
  [[nodiscard]] bool has(std::size_t row) const { return row % count == number - 1; }
};

/// What a store belongs to.
struct SweepIdentity {
  std::uint64_t fingerprint = 0;  ///< of everything that decides a cell
  std::size_t rows = 0;           ///< of all shards together
  Shard shard;
};

/// Table `rows`: the row's number, how it went (a Reply::Kind by its word), what was asked for (texts) and what was
/// predicted (numbers, in the unit that the column names). Table `sweep`: its identity, one row.
class SweepStore {
 public:
  /// Opens or continues the database, which this process owns until it ends; "" is a temporary one. Throws UsageError
  /// when another process has it, when it belongs to another sweep, or when it cannot be written.
  SweepStore(const std::string& file, const SweepIdentity& identity, const std::vector<std::string>& inputs);
  /// Opens what another sweep has written. Throws UsageError.
  explicit SweepStore(const std::string& file);

  [[nodiscard]] const SweepIdentity& identity() const { return identity_; }
  /// As they stand in the table: those of the input, then predicted_columns().
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// Whether the row is finished. One that failed for a passing reason is not: another run tries it again.
  [[nodiscard]] bool has(std::size_t row) const { return row < finished_.size() && finished_[row]; }
  [[nodiscard]] std::size_t count(Reply::Kind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::size_t rows() const;
  /// Adds a row that is not there. Throws UsageError when it cannot be written.
  void add(std::size_t row, const std::vector<std::string>& inputs, const Reply& reply);
  /// Adds every row of other stores of the same sweep; of a row that several have, the first one's.
  void add_all(const std::vector<std::string>& files);
  /// Everything that was added is on its way to the disk.
  void commit();
  [[nodiscard]] Database& database() { return database_; }
  /// What the database refused, as the user's. Throws UsageError.
  [[noreturn]] void refuse(const DatabaseError& error) const;

 private:
  void create(const std::vector<std::string>& inputs);
  bool read_identity();
  void read_rows();
  void add_together(std::span<const std::string> files);
  void note(std::size_t row, Reply::Kind kind);

  std::string file_;
  Database database_;
  SweepIdentity identity_;
  std::vector<std::string> columns_;
  std::vector<bool> finished_;
  std::vector<std::size_t> counts_;
  std::optional<Statement> insert_;
  bool in_transaction_ = false;
  std::chrono::steady_clock::time_point committed_;
};

}  // namespace foretrain
