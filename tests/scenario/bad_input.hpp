// What the tests of bad input share: the scenario that the bad ones start from, and how a complaint about it is judged.
// `^` marks the guilty place; it is taken out before the text is read, and gives the expected line and column.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"

namespace foretrain {

struct Complaint {
  bool thrown = false;
  SourcePosition where;
  std::string key, got, expected, text;
};

/// What reading the scenario complains about.
Complaint complaint_about(const std::string& text, const std::vector<std::string>& overrides = {});

/// 24 layers on two machines of eight GPUs: one line for each thing that can be wrong.
const std::vector<std::string>& good_lines();
/// The same as a text, with one line (counted from 1) replaced.
std::string good_text(std::size_t replaced_line = 0, std::string_view replacement = "");

/// The text, which marks the guilty place, must be refused there, for the key, with these words.
void check_complaint(std::string text, std::string_view key, std::string_view wrong, std::string_view right);

/// The good scenario with one line (counted from 1) replaced.
struct BadLine {
  std::size_t line;
  std::string_view replacement;
  std::string_view key;
  std::string_view wrong;  ///< part of what is wrong
  std::string_view right;  ///< part of what would be right
};
void check_bad_lines(std::span<const BadLine> lines);

}  // namespace foretrain
