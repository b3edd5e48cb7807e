// The command line of foretrain-gpu.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/base/error.hpp"

namespace foretrain::gpu {

class Arguments {
 public:
  using Words = std::vector<std::string>;
  /// `flags` are "--quick"; `values` "--only LIST" or "--only=LIST", of which those that are repeated keep every value;
  /// `-o` is `--output`. Words without a dash are taken where `files` says so. Throws UsageError.
  Arguments(const Words& words, const Words& flags, const Words& values, bool files = false);

  [[nodiscard]] bool has(const std::string& option) const { return options_.contains(option); }
  /// Every value of an option, in order.
  [[nodiscard]] Words all(const std::string& option) const;
  /// The last value. Throws UsageError where there is none.
  [[nodiscard]] std::string text(const std::string& option) const;
  /// The names between the commas of the last value; none of them may be empty. Throws UsageError.
  [[nodiscard]] Words list(const std::string& option) const;
  /// A whole number of at least `least`; `fallback` where the option is not given. Throws UsageError.
  [[nodiscard]] int integer(const std::string& option, int fallback, int least) const;
  [[nodiscard]] const Words& files() const { return files_; }

 private:
  std::map<std::string, Words> options_;
  Words files_;
};

}  // namespace foretrain::gpu
