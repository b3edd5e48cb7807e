// The settings of a prediction as text.
#pragma once

#include <string>

#include "model/result.hpp"

namespace foretrain {

/// The model and the resolved settings, one line per part; details only when `verbose`.
std::string settings_section(const Result& result, bool verbose);

/// Name of a setting by itself: "gradient sync algorithm", "weight format", "tensor".
std::string label_of(const Setting& setting);
bool is_whole_number(const std::string& text);

}  // namespace foretrain
