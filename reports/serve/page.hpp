// The page on which one writes a scenario and sees its prediction: page.html, which CMake makes a text of.
#pragma once

#include <string_view>

namespace foretrain {

std::string_view prediction_page();

}  // namespace foretrain
