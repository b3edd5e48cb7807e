#include "model/base/error.hpp"

#include <system_error>
#include <utility>

#include "model/base/utf8.hpp"

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

}  // namespace foretrain
