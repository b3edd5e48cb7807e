// SQLite with exceptions: a database that closes itself, and statements that free themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace foretrain {

/// What SQLite refused, in its words.
class DatabaseError : public std::runtime_error {
 public:
  DatabaseError(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  /// Another process holds the database.
  [[nodiscard]] bool busy() const;
  /// The file is something else.
  [[nodiscard]] bool no_database() const;
  /// A query of prepare_bounded() was stopped at the end of its steps.
  [[nodiscard]] bool interrupted() const;

 private:
  int code_;
};

/// A query or a command; places of values and columns count from 0.
class Statement {
 public:
  Statement& bind(int place, std::string_view text);
  Statement& bind(int place, double number);
  Statement& bind(int place, std::int64_t number);
  Statement& bind_null(int place);
  /// The value that a query's row has in a column, of whatever kind.
  Statement& bind(int place, const Statement& row, int column);
  /// Goes on to the next row of a query; false when there is none. A command is carried out.
  bool step();
  /// Carries out a command, which may then be bound and run again.
  void run();

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] bool is_number(int column) const;
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string column_name(int column) const;
  /// Whether it leaves the database as it is.
  [[nodiscard]] bool only_reads() const;

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement);
  void check(int code) const;

  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
};

/// Every member function throws DatabaseError.
class Database {
 public:
  /// Opens or creates a file; "" is a temporary database that goes away with the object.
  explicit Database(const std::string& file);

  /// Commands between semicolons.
  void run(const std::string& commands);
  /// One statement.
  [[nodiscard]] Statement prepare(const std::string& command);
  /// A query that holds what a user wrote: of table `rows` alone, without queries in it, with harmless functions alone.
  /// Its steps together take at most `most_steps` of SQLite's machine, which are some 10⁸ a second.
  [[nodiscard]] Statement prepare_bounded(const std::string& query, std::int64_t most_steps);
  /// A function of one value, by which texts become numbers in queries: the number, or the text where there is none.
  void add_function(const char* name, bool (*number_of)(std::string_view text, double& number));

 private:
  std::unique_ptr<std::int64_t> steps_left_ = std::make_unique<std::int64_t>(0);  ///< where the connection finds it
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> connection_;
};

/// A name as it stands in commands: "plan.tensor" in quotes.
std::string sql_name(std::string_view name);

}  // namespace foretrain
