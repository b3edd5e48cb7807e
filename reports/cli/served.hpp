// Answers to what a server is asked (reports/serve/service.hpp), in the process of its own that predicts.
#pragma once

#include <string>

#include "reports/serve/answer.hpp"

namespace foretrain {

/// The same bytes as `foretrain predict --json` prints, or why there are none. Scenarios name nothing but the
/// catalogue.
HttpAnswer answer_question(const std::string& question);

}  // namespace foretrain
