#include "reports/cli/sweep_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <queue>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "reports/result/csv.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t most_stored = 100'000'000, most_shards = 1'000'000;
constexpr int first_cell = 2;  ///< behind the row's number and how it went

std::string shown(const std::string& file) { return file.empty() ? "a temporary database" : file; }

[[noreturn]] void refuse_file(const std::string& file, const DatabaseError& error) {
  if (error.busy()) {
    throw UsageError(file + ": another sweep is writing it; wait until that ends, or choose another place with -o");
  }
  if (error.no_database()) {
    throw UsageError(file + ": this is no sweep's database; remove it, or choose another place with -o");
  }
  throw UsageError(fmt::format("{}: {}; choose another place with -o", shown(file), error.what()));
}

/// Before anything in it is changed.
void refuse_foreign(Database& database, const std::string& file) {
  if (database.prepare("SELECT 1 FROM sqlite_master WHERE name NOT IN ('rows', 'sweep')").step()) {
    throw UsageError(file + ": this is no sweep's database; choose another place with -o");
  }
}

/// Opened for this process alone, which works on network file systems too, and needs no other file than its log.
Database open_alone(const std::string& file) {
  if (!file.empty() && std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
    throw UsageError(file + ": this is no regular file, as a database is; choose another place with -o");
  }
  try {
    Database database(file);
    database.run("PRAGMA locking_mode = EXCLUSIVE");
    refuse_foreign(database, file);
    database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    database.run("BEGIN EXCLUSIVE; COMMIT");
    return database;
  } catch (const DatabaseError& error) {
    refuse_file(file, error);
  }
}

std::string declared(const std::string& column) {
  switch (kind_of_column(column)) {
    case CellKind::number:
      return sql_name(column) + " REAL";
    case CellKind::flag:
      return sql_name(column) + " INTEGER";
    case CellKind::text:
      break;
  }
  return sql_name(column) + " TEXT";
}

void bind_cell(Statement& statement, int place, const std::string& column, const std::string& cell) {
  const CellKind kind = kind_of_column(column);
  if (kind == CellKind::text) {
    statement.bind(place, cell);
  } else if (cell.empty()) {
    statement.bind_null(place);
  } else if (kind == CellKind::flag) {
    statement.bind(place, static_cast<std::int64_t>(cell == "true"));
  } else {
    double number = 0.0;
    std::from_chars(cell.data(), cell.data() + cell.size(), number);
    statement.bind(place, number);
  }
}

std::size_t count_rows(Database& database) {
  Statement count = database.prepare("SELECT count(*) FROM rows");
  return count.step() ? static_cast<std::size_t>(count.integer(0)) : 0;
}

/// "?, ?, ?".
std::string places(std::size_t count) {
  std::string text = "?";
  for (std::size_t i = 1; i < count; ++i) text += ", ?";
  return text;
}

/// Which row is the next, and of which part.
using Place = std::pair<std::int64_t, std::size_t>;

/// The rows of another store, one after the other.
class Part {
 public:
  explicit Part(const std::string& file)
      : file_(file), database_(open_alone(file)), rows_(database_.prepare("SELECT * FROM rows ORDER BY \"row\"")) {}
  bool step() {
    try {
      return rows_.step();
    } catch (const DatabaseError& error) {
      refuse_file(file_, error);
    }
  }
  [[nodiscard]] std::int64_t row() const { return rows_.integer(0); }
  void add_to(Statement& insert) const {
    for (int i = 0; i < rows_.columns(); ++i) insert.bind(i, rows_, i);
    insert.run();
  }

 private:
  std::string file_;
  Database database_;
  Statement rows_;
};

/// Hours of work are not lost by a slip.
[[noreturn]] void refuse_other(const std::string& file, std::size_t rows) {
  throw UsageError(
      fmt::format("{0}: holds {1} rows of another sweep (other inputs, options, or another version of the program); "
                  "choose another place with -o, or give them up with: rm {2}",
                  file, rows, shell_quoted(file)));
}

}  // namespace

SweepStore::SweepStore(const std::string& file, const SweepIdentity& identity, const std::vector<std::string>& inputs)
    : file_(file), database_(open_alone(file)), identity_(identity), counts_(names_of<Reply::Kind>.size()) {
  try {
    if (read_identity()) {
      const bool same = identity_.fingerprint == identity.fingerprint && identity_.rows == identity.rows &&
                        identity_.shard.number == identity.shard.number &&
                        identity_.shard.count == identity.shard.count;
      if (!same) refuse_other(file, count_rows(database_));
      database_.run("DELETE FROM rows WHERE outcome = 'interrupted'");
      read_rows();
    } else {
      create(inputs);
    }
    insert_ = database_.prepare("INSERT INTO rows VALUES (" + places(first_cell + columns_.size()) + ")");
  } catch (const DatabaseError& error) {
    refuse_file(file, error);
  }
}

SweepStore::SweepStore(const std::string& file)
    : file_(file),
      database_(std::filesystem::is_regular_file(file)
                    ? open_alone(file)
                    : throw UsageError(file + ": there is no such file; it would be written by a shard of a sweep")),
      counts_(names_of<Reply::Kind>.size()) {
  try {
    if (!read_identity()) throw UsageError(file + ": this is no sweep's database");
    read_rows();
  } catch (const DatabaseError& error) {
    refuse_file(file, error);
  }
}

void SweepStore::refuse(const DatabaseError& error) const { refuse_file(file_, error); }

/// In one step: a database has all of it, or is empty.
void SweepStore::create(const std::vector<std::string>& inputs) {
  columns_ = inputs;
  columns_.insert(columns_.end(), predicted_columns().begin(), predicted_columns().end());
  std::string declarations;
  for (const std::string& column : columns_) declarations += ", " + declared(column);
  database_.run("BEGIN");
  database_.run("CREATE TABLE rows (\"row\" INTEGER PRIMARY KEY, \"outcome\" TEXT" + declarations + ")");
  database_.run("CREATE TABLE sweep (fingerprint TEXT, rows INTEGER, shard INTEGER, shards INTEGER)");
  database_.prepare("INSERT INTO sweep VALUES (?, ?, ?, ?)")
      .bind(0, fmt::format("{:016x}", identity_.fingerprint))
      .bind(1, static_cast<std::int64_t>(identity_.rows))
      .bind(2, static_cast<std::int64_t>(identity_.shard.number))
      .bind(3, static_cast<std::int64_t>(identity_.shard.count))
      .run();
  database_.run("COMMIT");
}

/// False where the database is empty.
bool SweepStore::read_identity() {
  if (!database_.prepare("SELECT 1 FROM sqlite_master").step()) return false;
  Statement read = database_.prepare("SELECT fingerprint, rows, shard, shards FROM sweep");
  if (!read.step()) return false;
  const std::string fingerprint = read.text(0);
  std::from_chars(fingerprint.data(), fingerprint.data() + fingerprint.size(), identity_.fingerprint, 16);
  const auto count = [&](int column, std::int64_t least, std::int64_t most) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(read.integer(column), least, most));
  };
  identity_.rows = count(1, 0, most_stored);
  identity_.shard = {count(2, 1, most_shards), count(3, 1, most_shards)};
  return true;
}

void SweepStore::read_rows() {
  const Statement all = database_.prepare("SELECT * FROM rows");
  for (int i = first_cell; i < all.columns(); ++i) columns_.push_back(all.column_name(i));
  Statement rows = database_.prepare("SELECT row, outcome FROM rows");
  while (rows.step()) {
    const std::int64_t number = rows.integer(0);
    const auto kind = value_of<Reply::Kind>(rows.text(1));
    if (kind && number >= 0 && number < most_stored) note(static_cast<std::size_t>(number), *kind);
  }
}

void SweepStore::note(std::size_t row, Reply::Kind kind) {
  if (row >= finished_.size()) finished_.resize(row + 1);
  finished_[row] = kind != Reply::Kind::interrupted;
  ++counts_[static_cast<std::size_t>(kind)];
}

std::size_t SweepStore::rows() const {
  std::size_t sum = 0;
  for (const std::size_t count : counts_) sum += count;
  return sum;
}

void SweepStore::add(std::size_t row, const std::vector<std::string>& inputs, const Reply& reply) {
  constexpr auto pause = std::chrono::milliseconds(50);  // between commits: each costs as much as several rows
  std::vector<std::string> cells = inputs;
  const bool answered = reply.kind == Reply::Kind::answer;
  const std::vector<std::string> predicted = answered ? split(reply.text, ',') : failed_cells(reply.text);
  cells.insert(cells.end(), predicted.begin(), predicted.end());
  try {
    if (!std::exchange(in_transaction_, true)) database_.run("BEGIN");
    insert_->bind(0, static_cast<std::int64_t>(row)).bind(1, name(reply.kind));
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      bind_cell(*insert_, first_cell + static_cast<int>(i), columns_[i], cells.at(i));
    }
    insert_->run();
    note(row, reply.kind);
    if (std::chrono::steady_clock::now() - committed_ > pause) commit();
  } catch (const DatabaseError& error) {
    refuse(error);
  }
}

void SweepStore::add_all(const std::vector<std::string>& files) {
  constexpr std::size_t most_open = 100;
  for (const std::string& file : files) {
    const SweepStore other(file);
    if (other.identity_.fingerprint != identity_.fingerprint || other.columns_ != columns_) {
      throw UsageError(file + ": this is a part of another sweep; merge parts of one");
    }
  }
  for (std::size_t first = 0; first < files.size(); first += most_open) {
    add_together(std::span(files).subspan(first, std::min(most_open, files.size() - first)));
  }
  columns_.clear();
  read_rows();
}

/// In the order of rows: part after part, each would touch every page of the database that the parts before it made.
void SweepStore::add_together(std::span<const std::string> files) {
  try {
    std::vector<Part> parts;
    parts.reserve(files.size());
    std::priority_queue<Place, std::vector<Place>, std::greater<>> next;
    const auto go_on = [&](std::size_t i) {
      if (parts[i].step()) next.emplace(parts[i].row(), i);
    };
    for (std::size_t i = 0; i < files.size(); ++i) {
      parts.emplace_back(files[i]);
      go_on(i);
    }
    Statement insert =
        database_.prepare("INSERT OR IGNORE INTO rows VALUES (" + places(first_cell + columns_.size()) + ")");
    database_.run("BEGIN");
    while (!next.empty()) {
      const std::size_t i = next.top().second;
      next.pop();
      parts[i].add_to(insert);
      go_on(i);
    }
    database_.run("COMMIT");
  } catch (const DatabaseError& error) {
    refuse(error);
  }
}

void SweepStore::commit() {
  if (!std::exchange(in_transaction_, false)) return;
  try {
    database_.run("COMMIT");
  } catch (const DatabaseError& error) {
    refuse(error);
  }
  committed_ = std::chrono::steady_clock::now();
}

}  // namespace foretrain
