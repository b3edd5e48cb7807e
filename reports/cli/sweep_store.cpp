#include "reports/cli/sweep_store.hpp"

#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t most_stored = 100'000'000;
constexpr int first_cell = 2;  ///< behind the row's number and how it went

[[noreturn]] void refuse_file(const std::string& file, const SQLite::Exception& error) {
  const int code = error.getErrorCode();
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    throw UsageError(file + ": another sweep is writing it; wait until that ends, or choose another place with -o");
  }
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) {
    throw UsageError(file + ": this is no sweep's database; remove it, or choose another place with -o");
  }
  throw UsageError(
      fmt::format("{}: {}; choose another place with -o", file.empty() ? "a temporary database" : file, error.what()));
}

/// Opened for this process alone, which works on network file systems too, and needs no other file than its log.
SQLite::Database open_alone(const std::string& file) {
  if (!file.empty() && std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
    throw UsageError(file + ": this is no regular file, as a database is; choose another place with -o");
  }
  try {
    SQLite::Database database(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    // A file may be anyone's: what it declares is not carried out (https://sqlite.org/security.html). Misspelt names in
    // quotes are no texts.
    for (const int trust : {SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_TRUSTED_SCHEMA,
                            SQLITE_DBCONFIG_DQS_DML}) {
      sqlite3_db_config(database.getHandle(), trust, 0, nullptr);
    }
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    if (SQLite::Statement(database, "SELECT 1 FROM sqlite_master WHERE tbl_name NOT IN ('rows', 'sweep')")
            .executeStep()) {
      throw UsageError(file + ": this is no sweep's database; choose another place with -o");
    }
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; BEGIN EXCLUSIVE; COMMIT");
    return database;
  } catch (const SQLite::Exception& error) {
    refuse_file(file, error);
  }
}

std::string declared(const std::string& column) {
  const CellKind kind = kind_of_column(column);
  return sql_name(column) + (kind == CellKind::number ? " REAL" : kind == CellKind::flag ? " INTEGER" : " TEXT");
}

void bind_cell(SQLite::Statement& statement, int place, CellKind kind, std::string_view cell) {
  if (kind == CellKind::text) return statement.bind(place, std::string(cell));
  if (cell.empty()) return;  // null, as after each row
  double number = cell == "true" ? 1.0 : 0.0;
  if (kind == CellKind::number) std::from_chars(cell.data(), cell.data() + cell.size(), number);
  statement.bind(place, number);
}

[[noreturn]] void refuse_other(const std::string& file, std::size_t rows) {
  throw UsageError(
      fmt::format("{0}: holds {1} rows of another sweep (other inputs, options, or another version of the program); "
                  "choose another place with -o, or give them up with: rm {2}",
                  file, rows, shell_quoted(file)));
}

}  // namespace

SweepStore::SweepStore(const std::string& file, const SweepIdentity& identity, const std::vector<std::string>& inputs)
    : file_(file), database_(open_alone(file)), identity_(identity) {
  guarded([&] {
    if (!read_identity()) create(inputs);
    if (identity_.fingerprint != identity.fingerprint || identity_.rows != identity.rows) refuse_other(file, count());
    database_.exec("DELETE FROM rows WHERE outcome = 'interrupted'");
    const std::vector<const char*> places(first_cell + columns_.size(), "?");
    insert_.emplace(database_, fmt::format("INSERT INTO rows VALUES ({})", fmt::join(places, ", ")));
  });
}

SweepStore::SweepStore(const std::string& file)
    : file_(file),
      database_(std::filesystem::is_regular_file(file)
                    ? open_alone(file)
                    : throw UsageError(file + ": there is no such file; it would be written by a shard of a sweep")) {
  if (!guarded([&] { return read_identity(); })) throw UsageError(file + ": this is no sweep's database");
}

void SweepStore::refuse(const SQLite::Exception& error) const { refuse_file(file_, error); }

/// In one step: a database has all of it, or is empty. Rows lie as they come in, beside an index of their numbers:
/// shard after shard, ordered ones would be written as often as there are shards.
void SweepStore::create(const std::vector<std::string>& inputs) {
  columns_ = inputs;
  columns_.insert(columns_.end(), predicted_columns().begin(), predicted_columns().end());
  std::ranges::transform(columns_, std::back_inserter(kinds_), kind_of_column);
  std::string declarations;
  for (const std::string& column : columns_) declarations += ", " + declared(column);
  SQLite::Transaction all(database_);
  database_.exec("CREATE TABLE rows (\"row\" INTEGER NOT NULL UNIQUE, \"outcome\" TEXT" + declarations + ")");
  database_.exec("CREATE TABLE sweep (fingerprint TEXT, rows INTEGER)");
  database_.exec(fmt::format("INSERT INTO sweep VALUES ('{:016x}', {})", identity_.fingerprint, identity_.rows));
  all.commit();
}

/// False where the database is empty.
bool SweepStore::read_identity() {
  if (!SQLite::Statement(database_, "SELECT 1 FROM sqlite_master").executeStep()) return false;
  SQLite::Statement read(database_, "SELECT fingerprint, rows FROM sweep");
  if (!read.executeStep()) return false;
  const std::string fingerprint = read.getColumn(0).getString();
  std::from_chars(fingerprint.data(), fingerprint.data() + fingerprint.size(), identity_.fingerprint, 16);
  identity_.rows = static_cast<std::size_t>(std::clamp<std::int64_t>(read.getColumn(1).getInt64(), 0, most_stored));
  const SQLite::Statement rows(database_, "SELECT * FROM rows");
  for (int i = first_cell; i < rows.getColumnCount(); ++i) columns_.emplace_back(rows.getColumnName(i));
  std::ranges::transform(columns_, std::back_inserter(kinds_), kind_of_column);
  return true;
}

std::vector<bool> SweepStore::finished() const {
  std::vector<bool> finished(identity_.rows);
  guarded([&] {
    SQLite::Statement rows(database_, "SELECT row FROM rows WHERE outcome <> 'interrupted'");
    while (rows.executeStep()) {
      const std::int64_t row = rows.getColumn(0).getInt64();
      if (row >= 0 && std::cmp_less(row, finished.size())) finished[static_cast<std::size_t>(row)] = true;
    }
  });
  return finished;
}

std::size_t SweepStore::count(std::optional<Reply::Kind> kind) const {
  const std::string which = kind ? fmt::format(" WHERE outcome = '{}'", name(*kind)) : "";
  return guarded([&]() -> std::size_t {
    SQLite::Statement query(database_, "SELECT count(*) FROM rows" + which);
    return query.executeStep() ? static_cast<std::size_t>(query.getColumn(0).getInt64()) : 0;
  });
}

void SweepStore::add(std::size_t row, const std::vector<std::string>& inputs, const Reply& reply) {
  constexpr auto pause = std::chrono::milliseconds(50);  // between commits: each costs as much as several rows
  const bool answered = reply.kind == Reply::Kind::answer;
  const std::size_t last = columns_.size() - 1;
  guarded([&] {
    if (!std::exchange(in_transaction_, true)) database_.exec("BEGIN");
    insert_->bind(1, static_cast<std::int64_t>(row));
    insert_->bind(2, std::string(name(reply.kind)));
    std::string_view left = answered ? reply.text : std::string_view();
    for (std::size_t i = 0; i <= last; ++i) {
      std::string_view cell = i < inputs.size() ? std::string_view(inputs[i]) : left.substr(0, left.find(','));
      if (i >= inputs.size()) left.remove_prefix(std::min(cell.size() + 1, left.size()));
      if (i == last && !answered) cell = reply.text;
      bind_cell(*insert_, 1 + first_cell + static_cast<int>(i), kinds_[i], cell);
    }
    insert_->exec();
    insert_->reset();
    insert_->clearBindings();
    if (std::chrono::steady_clock::now() - committed_ > pause) commit();
  });
}

void SweepStore::merge(const std::string& file) {
  {
    const SweepStore other(file);
    if (other.identity_.fingerprint != identity_.fingerprint || other.columns_ != columns_) {
      throw UsageError(file + ": this is a shard of another sweep; merge shards of one");
    }
  }
  try {
    SQLite::Statement attach(database_, "ATTACH ? AS shard");
    attach.bind(1, file);
    attach.exec();
    database_.exec("PRAGMA main.cache_size = -100000");  // KiB, for the index of ten million rows
    database_.exec("INSERT OR IGNORE INTO main.rows SELECT * FROM shard.rows ORDER BY rowid");
    database_.exec("DETACH shard");
  } catch (const SQLite::Exception& error) {
    refuse_file(file, error);
  }
}

void SweepStore::commit() {
  if (!std::exchange(in_transaction_, false)) return;
  guarded([&] { database_.exec("COMMIT"); });
  committed_ = std::chrono::steady_clock::now();
}

std::string sql_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

}  // namespace foretrain
