#include "reports/cli/sqlite.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace foretrain {

namespace {

constexpr int longest_value = 20'000'000;   // bytes of a cell; files of cases are smaller
constexpr int longest_command = 4'000'000;  // a table of a thousand columns takes 100,000
constexpr int longest_pattern = 1000;       // LIKE takes the product of its two lengths
constexpr int steps_between_looks = 1000;

/// Functions of SQLite by which rows are chosen: none makes much of little.
constexpr std::array<std::string_view, 27> harmless_functions = {
    "abs",   "ceil",   "ceiling", "coalesce", "exp",   "floor", "glob",   "ifnull", "iif",
    "instr", "length", "like",    "ln",       "log",   "log10", "log2",   "lower",  "max",
    "min",   "nullif", "pow",     "power",    "round", "sqrt",  "substr", "upper",  "value"};

/// What one query does while it is prepared.
struct Permissions {
  int selections = 0;
  static constexpr int own_selections = 2;  ///< of rows, and of rows with names
};

int permit(void* permissions, int action, const char* table, const char* function, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
      return ++static_cast<Permissions*>(permissions)->selections > Permissions::own_selections ? SQLITE_DENY
                                                                                                : SQLITE_OK;
    case SQLITE_READ:  // a table without a name is a query's
      return table == nullptr || *table == '\0' || std::string_view(table) == "rows" ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION: {
      std::string name(function == nullptr ? "" : function);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      return std::ranges::find(harmless_functions, name) == harmless_functions.end() ? SQLITE_DENY : SQLITE_OK;
    }
    default:
      return SQLITE_DENY;
  }
}

int count_down(void* steps_left) {
  auto& left = *static_cast<std::int64_t*>(steps_left);
  left -= steps_between_looks;
  return left < 0 ? 1 : 0;
}

}  // namespace

bool DatabaseError::busy() const { return code_ == SQLITE_BUSY || code_ == SQLITE_LOCKED; }

bool DatabaseError::no_database() const { return code_ == SQLITE_NOTADB || code_ == SQLITE_CORRUPT; }

bool DatabaseError::interrupted() const { return code_ == SQLITE_INTERRUPT; }

Statement::Statement(sqlite3_stmt* statement) : statement_(statement, &sqlite3_finalize) {}

void Statement::check(int code) const {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  throw DatabaseError(code, sqlite3_errmsg(sqlite3_db_handle(statement_.get())));
}

Statement& Statement::bind(int place, std::string_view text) {
  check(sqlite3_bind_text(statement_.get(), place + 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind(int place, double number) {
  check(sqlite3_bind_double(statement_.get(), place + 1, number));
  return *this;
}

Statement& Statement::bind(int place, std::int64_t number) {
  check(sqlite3_bind_int64(statement_.get(), place + 1, number));
  return *this;
}

Statement& Statement::bind_null(int place) {
  check(sqlite3_bind_null(statement_.get(), place + 1));
  return *this;
}

Statement& Statement::bind(int place, const Statement& row, int column) {
  check(sqlite3_bind_value(statement_.get(), place + 1, sqlite3_column_value(row.statement_.get(), column)));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  check(code);
  return code == SQLITE_ROW;
}

void Statement::run() {
  while (step()) continue;
  check(sqlite3_reset(statement_.get()));
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

bool Statement::is_number(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  return type == SQLITE_FLOAT || type == SQLITE_INTEGER;
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return text == nullptr ? std::string() : std::string(text, size);
}

double Statement::number(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }

std::string Statement::column_name(int column) const { return sqlite3_column_name(statement_.get(), column); }

bool Statement::only_reads() const { return sqlite3_stmt_readonly(statement_.get()) != 0; }

Database::Database(const std::string& file) : connection_(nullptr, &sqlite3_close) {
  sqlite3* connection = nullptr;
  const int code = sqlite3_open(file.c_str(), &connection);
  connection_.reset(connection);
  if (code != SQLITE_OK) throw DatabaseError(code, connection ? sqlite3_errmsg(connection) : "out of memory");
  // Without this, a misspelt name in quotes would be a text.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  // A file may be anyone's: what it declares is not carried out (https://sqlite.org/security.html).
  sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, longest_value);
  sqlite3_limit(connection, SQLITE_LIMIT_SQL_LENGTH, longest_command);
  sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, longest_pattern);
}

void Database::run(const std::string& commands) {
  const int code = sqlite3_exec(connection_.get(), commands.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw DatabaseError(code, sqlite3_errmsg(connection_.get()));
}

Statement Database::prepare(const std::string& command) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code =
      sqlite3_prepare_v2(connection_.get(), command.c_str(), static_cast<int>(command.size()) + 1, &statement, &rest);
  Statement prepared(statement);
  if (code != SQLITE_OK) throw DatabaseError(code, sqlite3_errmsg(connection_.get()));
  if (statement == nullptr || *rest != '\0') throw DatabaseError(SQLITE_ERROR, "this is not one statement");
  return prepared;
}

Statement Database::prepare_bounded(const std::string& query, std::int64_t most_steps) {
  Permissions permissions;
  sqlite3_set_authorizer(connection_.get(), permit, &permissions);
  const auto trusted = [](sqlite3* connection) { sqlite3_set_authorizer(connection, nullptr, nullptr); };
  const std::unique_ptr<sqlite3, decltype(trusted)> until_prepared(connection_.get(), trusted);
  *steps_left_ = most_steps;
  sqlite3_progress_handler(connection_.get(), steps_between_looks, count_down, steps_left_.get());
  return prepare(query);
}

void Database::add_function(const char* name, bool (*number_of)(std::string_view, double&)) {
  const auto call = [](sqlite3_context* context, int, sqlite3_value** values) {
    const auto known = reinterpret_cast<bool (*)(std::string_view, double&)>(sqlite3_user_data(context));
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
    double number = 0.0;
    if (text != nullptr &&
        known(std::string_view(text, static_cast<std::size_t>(sqlite3_value_bytes(values[0]))), number)) {
      sqlite3_result_double(context, number);
    } else {
      sqlite3_result_value(context, values[0]);
    }
  };
  const int code = sqlite3_create_function(connection_.get(), name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                           reinterpret_cast<void*>(number_of), call, nullptr, nullptr);
  if (code != SQLITE_OK) throw DatabaseError(code, sqlite3_errmsg(connection_.get()));
}

std::string sql_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

}  // namespace foretrain
