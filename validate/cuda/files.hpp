// Files of a folder of results.
#pragma once

#include <string>

namespace foretrain::gpu {

/// Empty where there is none.
std::string file_text(const std::string& path);
/// Replaces the file in one step. Throws std::system_error.
void replace_file(const std::string& path, const std::string& text);

}  // namespace foretrain::gpu
