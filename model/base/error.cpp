#include "model/base/error.hpp"

#include <string_view>
#include <system_error>
#include <utility>

#include "model/base/text.hpp"

namespace foretrain {

namespace {

/// Bytes of a place, of a key, and of what is wrong, in a message: a wrong value of a page's length tells no more than
/// its ends.
constexpr std::size_t longest_complaint = 400;

std::string message(const SourcePosition& where, const std::string& key, const std::string& got,
                    const std::string& expected) {
  std::string text = shortened(where.text(), longest_complaint);
  if (!text.empty()) text += ": ";
  if (!key.empty()) text += shortened(key, longest_complaint) + ": ";
  text += shortened(got, longest_complaint);
  if (!expected.empty()) text += "; " + expected;
  return text;
}

/// From the root of the source tree on, which lies wherever the program was built.
std::string in_source_tree(std::string_view file) {
  constexpr std::string_view own = __builtin_FILE();
  constexpr std::size_t root = own.size() - std::string_view("model/base/error.cpp").size();
  return std::string(file.starts_with(own.substr(0, root)) ? file.substr(root) : file);
}

}  // namespace

std::string SourcePosition::text() const {
  std::string text = file;
  if (line > 0) text += ":" + std::to_string(line) + ":" + std::to_string(column);
  return text;
}

void throw_system_error(const std::string& what, int error) {
  throw std::system_error(error, std::generic_category(), what);
}

ScenarioError::ScenarioError(SourcePosition where, std::string key, std::string got, std::string expected)
    : std::runtime_error(message(where, key, got, expected)),
      where_(std::move(where)),
      key_(std::move(key)),
      got_(std::move(got)),
      expected_(std::move(expected)) {}

ImpossiblePlan::ImpossiblePlan(const std::string& what, std::string key)
    : std::runtime_error(what), key_(std::move(key)) {}

std::string internal_error_text(const std::string& what) {
  constexpr const char* begin = "internal error: ";
  return what.starts_with(begin) ? what : begin + what + "; please report this, with the scenario";
}

InternalError::InternalError(const std::string& what, const char* file, int line)
    : std::logic_error(internal_error_text(what + " (" + in_source_tree(file) + ":" + std::to_string(line) + ")")) {}

}  // namespace foretrain
