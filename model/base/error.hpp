// What went wrong with the user's input, where, and what would be right.
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
  [[nodiscard]] const std::string& got() const { return got_; }            ///< what is wrong
  [[nodiscard]] const std::string& expected() const { return expected_; }  ///< what would be right

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

}  // namespace foretrain
