// Where this code itself lies: what comes with it is found from there.
#pragma once

#include <filesystem>

namespace foretrain {

/// The program's file, or that of the library that another program has loaded and this code is part of.
std::filesystem::path own_file();

}  // namespace foretrain
