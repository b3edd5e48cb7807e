// Results for people: the answer first, then where it comes from.
#pragma once

#include <string>
#include <string_view>

#include "model/result.hpp"

namespace foretrain {

struct TextOptions {
  bool verbose = false;  ///< list every constant with its source; of a validation, every case
};

/// One prediction as a page of text, ending in a line end.
std::string to_text(const Result& result, const TextOptions& options = {});

/// "GPT-2 XL (flows: simulated contention)", with text around it.
std::string title_of(const Result& result, std::string_view begin = "", std::string_view end = "");

/// " (90 % interval 40.1–47.9 s)" where the result states one.
std::string interval_of(const Result& result);

}  // namespace foretrain
