// Parts of this program that are loaded when they are needed: what they stand on takes its time to load.
#pragma once

#include <filesystem>

namespace foretrain {

/// A function of a module that was built at this place; it is looked for beside the program and where it is installed
/// with it, too. Throws std::runtime_error saying why there is none.
void* function_of_module(const std::filesystem::path& built, const char* name);

}  // namespace foretrain
