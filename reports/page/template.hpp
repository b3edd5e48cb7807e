// The page without its data, as `make page` bundles it from reports/page/source.
#pragma once

#include <string_view>

namespace foretrain {

/// Its title and its data stand where page_title_place and page_data_place do.
std::string_view page_template();

inline constexpr std::string_view page_title_place = "%FORETRAIN-TITLE%", page_data_place = "%FORETRAIN-DATA%";

}  // namespace foretrain
