// `foretrain hardware init`.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrain {

/// Adds it to `foretrain hardware`.
void add_hardware_init(CLI::App& hardware);

}  // namespace foretrain
