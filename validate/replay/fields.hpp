// A line of a keyword, perhaps a number, and key=value pairs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain::replay {

class Fields {
 public:
  /// `where` is "file:line". Throws GraphFileError for a line that is not made so, and for a key given twice.
  Fields(std::string_view line, std::string where);

  [[nodiscard]] const std::string& keyword() const { return keyword_; }
  /// The words behind the keyword that are no pairs.
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

  // Each takes its key; a key that is missing, or a value of another form, is a GraphFileError.
  std::string text(const std::string& key);
  std::string one_of(const std::string& key, const std::vector<std::string>& words);
  bool flag(const std::string& key);
  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t most);
  /// Seconds or the like: finite and not negative.
  double number(const std::string& key);
  /// Whole numbers between commas; none where the key is not there.
  std::vector<int> list(const std::string& key, int most);
  /// All that is left.
  std::map<std::string, std::string> rest();
  /// Throws GraphFileError for a key that was not taken.
  void finish() const;

  [[noreturn]] void fail(const std::string& got, const std::string& expected) const;

 private:
  std::string where_, keyword_;
  std::vector<std::string> words_;
  std::map<std::string, std::string> pairs_;
};

/// A value as it is written: in quotation marks, with \" and \\, where it is empty or has other characters than
/// letters, digits and ._-+:/[],
std::string quoted(std::string_view value);

}  // namespace foretrain::replay
