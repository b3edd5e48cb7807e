// The command line of foretrain-gpu.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/base/error.hpp"

namespace foretrain::gpu {

/// What a subcommand understands.
struct Grammar {
  std::vector<std::string> flags;   ///< "--quick"
  std::vector<std::string> values;  ///< "--device N" or "--device=N"; those that may be repeated keep every value
  bool files = false;               ///< whether words without a dash are taken
};

class Arguments {
 public:
  /// `-o` is `--output`. Throws UsageError.
  Arguments(const std::vector<std::string>& words, const Grammar& grammar);

  [[nodiscard]] bool has(const std::string& option) const { return options_.count(option) != 0; }
  /// Every value of an option, in order.
  [[nodiscard]] std::vector<std::string> all(const std::string& option) const;
  /// The last value. Throws UsageError where there is none.
  [[nodiscard]] std::string text(const std::string& option) const;
  /// A whole number of at least `least`; `fallback` where the option is not given. Throws UsageError.
  [[nodiscard]] int integer(const std::string& option, int fallback, int least) const;
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

 private:
  std::map<std::string, std::vector<std::string>> options_;
  std::vector<std::string> files_;
};

/// The parts of a list between commas; none of them may be empty. Throws UsageError.
std::vector<std::string> split_list(const std::string& option, const std::string& list);

}  // namespace foretrain::gpu
