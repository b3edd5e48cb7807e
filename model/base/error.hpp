// Errors, by who can mend them: ScenarioError and UsageError the user, who learns where and what would be
// right; ImpossiblePlan a search, which tries another, or the user; InternalError nobody but us.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>

namespace foretrain {

/// A place in an input file; line and column count from 1, and 0 means "the file as a whole".
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;

  /// "file:line:column" (parts that are unknown are left out).
  [[nodiscard]] std::string text() const;
};

/// Bad input. what() reads `file:line:column: key: what is wrong; what would be right`.
class ScenarioError : public std::runtime_error {
 public:
  ScenarioError(SourcePosition where, std::string key, std::string got, std::string expected);

  [[nodiscard]] const SourcePosition& where() const { return where_; }
  [[nodiscard]] const std::string& key() const { return key_; }            ///< dotted key, may be empty
  [[nodiscard]] const std::string& got() const { return got_; }            ///< the problem
  [[nodiscard]] const std::string& expected() const { return expected_; }  ///< the remedy

 private:
  SourcePosition where_;
  std::string key_, got_, expected_;
};

/// Says what the operating system refused, by the number that it left in errno. Throws std::system_error.
[[noreturn]] void throw_system_error(const std::string& what, int error = errno);

/// Wrong use of the command line, or an environment that cannot do what was asked (exit status 2, like ScenarioError).
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A combination of schedule, plan and hardware that cannot be carried out, though each part of it could be. Searches
/// pass it by; where the user asked for it, it is reported as a ScenarioError at the key, and counts as bad input.
class ImpossiblePlan : public std::runtime_error {
 public:
  /// `key`: dotted, of what would have to change; empty where the thrower does not know.
  explicit ImpossiblePlan(const std::string& what, std::string key = "");
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  std::string key_;
};

/// A mistake of this program, whatever the input was. what() says where it was noticed and asks for a report.
class InternalError : public std::logic_error {
 public:
  /// The place is that of the call (not std::source_location, which clang-tidy 14 does not know).
  explicit InternalError(const std::string& what, const char* file = __builtin_FILE(), int line = __builtin_LINE());
};

/// The same of an exception that no part of this program means to let out.
std::string internal_error_text(const std::string& what);

}  // namespace foretrain
