// The file of this code, from which the files shipped with it are found.
#pragma once

#include <filesystem>

namespace foretrain {

/// The program's file, or that of the library that another program has loaded and this code is part of.
std::filesystem::path own_file();

/// A function of a part of this program that is loaded when it is needed, as what it stands on takes its time to load.
/// The module was built at this place; it is looked for beside the program and where it is installed with it, too.
/// Throws std::runtime_error saying why there is none.
void* function_of_module(const std::filesystem::path& built, const char* name);

}  // namespace foretrain
