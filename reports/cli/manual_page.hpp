// The manual page, read off the command line's own description.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace foretrain {

/// The page of section 1 of the manual, in the macros of man(7).
std::string manual_page(const CLI::App& app);

}  // namespace foretrain
