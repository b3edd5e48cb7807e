// What a server says: a status of HTTP and a text.
#pragma once

#include <string>

#include "model/base/error.hpp"

namespace foretrain {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
};

/// An answer that says what is wrong, and what would be right, as JSON: {"error", "file", "line", "column", "key",
/// "remedy"}; of places only what is known.
HttpAnswer complaint(int status, const std::string& error, const std::string& remedy);
/// The same of bad input: status 400.
HttpAnswer complaint(const ScenarioError& error);
/// The same of a text "what is wrong; what would be right".
HttpAnswer complaint(int status, const std::string& text);

}  // namespace foretrain
