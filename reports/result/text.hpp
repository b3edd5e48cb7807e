// Results for people: the answer first, then where it comes from.
#pragma once

#include <string>

#include "model/result.hpp"

namespace foretrain {

struct TextOptions {
  bool verbose = false;  ///< list every constant with its source; of a validation, every case
};

/// One prediction as a page of text, ending in a line end.
std::string to_text(const Result& result, const TextOptions& options = {});

}  // namespace foretrain
