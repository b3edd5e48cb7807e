#include "model/base/own_file.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace foretrain {

std::filesystem::path own_file() {
  std::error_code unknown;
  Dl_info symbol;
  void* loaded = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&own_file), &symbol, &loaded, RTLD_DL_LINKMAP) != 0) {
    const std::filesystem::path library = static_cast<link_map*>(loaded)->l_name;  // empty for the program itself
    if (!library.empty()) return std::filesystem::canonical(library, unknown);
  }
  return std::filesystem::read_symlink("/proc/self/exe", unknown);
}

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
