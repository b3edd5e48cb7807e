// The rows of a sweep in an SQLite database, keyed by their number. Rows are stored as they finish, so that an
// interrupted sweep continues and shards of a sweep can be merged.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/cli/workers.hpp"
#include "reports/result/csv.hpp"

namespace foretrain {

struct SweepIdentity {
  std::uint64_t fingerprint = 0;  ///< of everything that decides a cell
  std::size_t rows = 0;           ///< of all shards together
};

/// Table `rows`: the row's number, how it went (a Reply::Kind by its word), what was asked for (texts) and what was
/// predicted (numbers, in the unit that the column names). Table `sweep`: its identity, one row.
class SweepStore {
 public:
  /// Opens or continues the database, which this process owns until it ends; "" is a temporary one. Rows that were
  /// interrupted are removed. Throws UsageError when another process has it, when it belongs to another sweep, or when
  /// it cannot be written.
  SweepStore(const std::string& file, const SweepIdentity& identity, const std::vector<std::string>& inputs);
  /// Opens what another sweep has written. Throws UsageError.
  explicit SweepStore(const std::string& file);

  [[nodiscard]] const SweepIdentity& identity() const { return identity_; }
  /// As they stand in the table: those of the input, then predicted_columns().
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<CellKind>& kinds() const { return kinds_; }
  /// Of each row of the sweep, whether it is there and was not interrupted.
  [[nodiscard]] std::vector<bool> finished() const;
  /// Number of rows, or of rows of one kind.
  [[nodiscard]] std::size_t count(std::optional<Reply::Kind> kind = {}) const;
  /// Adds a row that is not there. Throws UsageError when it cannot be written.
  void add(std::size_t row, const std::vector<std::string>& inputs, const Reply& reply);
  /// Adds the rows of another store of the same sweep that are not there.
  void merge(const std::string& file);
  /// Everything that was added is on its way to the disk.
  void commit();
  [[nodiscard]] SQLite::Database& database() { return database_; }
  /// Reports an error of the database as a UsageError.
  [[noreturn]] void refuse(const SQLite::Exception& error) const;
  /// Returns the result of the work; calls refuse() for errors of the database.
  template <typename Work>
  auto guarded(const Work& work) const {
    try {
      return work();
    } catch (const SQLite::Exception& error) {
      refuse(error);
    }
  }

 private:
  void create(const std::vector<std::string>& inputs);
  bool read_identity();

  std::string file_;
  SQLite::Database database_;
  SweepIdentity identity_;
  std::vector<std::string> columns_;
  std::vector<CellKind> kinds_;  ///< of the columns
  std::optional<SQLite::Statement> insert_;
  bool in_transaction_ = false;
  std::chrono::steady_clock::time_point committed_;
};

/// A name as it stands in commands: "plan.tensor" in quotes.
std::string sql_name(std::string_view name);

}  // namespace foretrain
