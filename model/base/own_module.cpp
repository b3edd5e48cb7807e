#include "model/base/own_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "model/base/own_file.hpp"

namespace foretrain {

namespace {

/// Beside the program, where it has been installed with it, where it was built, or, for programs of others that use the
/// library, where systems install.
std::vector<std::filesystem::path> places_of(const std::filesystem::path& built) {
  const std::filesystem::path program = own_file().parent_path();
  return {program / built.filename(), program / "../lib/foretrain" / built.filename(), built,
          "/usr/local/lib/foretrain" / built.filename(), "/usr/lib/foretrain" / built.filename()};
}

}  // namespace

void* function_of_module(const std::filesystem::path& built, const char* name) {
  std::string problem = "not found";
  for (const std::filesystem::path& place : places_of(built)) {
    std::error_code unknown;
    if (!std::filesystem::exists(place, unknown)) continue;
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      if (void* function = dlsym(library, name); function != nullptr) return function;
    }
    problem = dlerror();
  }
  throw std::runtime_error(fmt::format("{}: {}", built.string(), problem));
}

}  // namespace foretrain
