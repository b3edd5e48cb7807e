#include "sim/link_sharing.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "model/base/own_file.hpp"

namespace foretrain {

namespace {

using MakeSharing = LinkSharing*(const SharedLinks&);

/// Beside the program, where it has been installed with it, where it was built, or, for programs of others that use the
/// library, where systems install.
std::vector<std::filesystem::path> places_of_library() {
  const std::filesystem::path built = FORETRAIN_SIMGRID_LIBRARY;
  const std::filesystem::path program = own_file().parent_path();
  return {program / built.filename(), program / "../lib/foretrain" / built.filename(), built,
          "/usr/local/lib/foretrain" / built.filename(), "/usr/lib/foretrain" / built.filename()};
}

MakeSharing* load_library() {
  std::string problem = "not found";
  for (const std::filesystem::path& place : places_of_library()) {
    std::error_code unknown;
    if (!std::filesystem::exists(place, unknown)) continue;
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      if (void* make = dlsym(library, "foretrain_share_links"); make != nullptr) {
        return reinterpret_cast<MakeSharing*>(make);
      }
    }
    problem = dlerror();
  }
  throw std::runtime_error(
      fmt::format("flows meet, and SimGrid cannot be loaded: {}: {}; install SimGrid, or ask for --fidelity estimate",
                  FORETRAIN_SIMGRID_LIBRARY, problem));
}

MakeSharing& make_sharing() {
  static MakeSharing* const make = load_library();
  return *make;
}

}  // namespace

std::unique_ptr<LinkSharing> LinkSharing::make(const SharedLinks& links) {
  return std::unique_ptr<LinkSharing>(make_sharing()(links));
}

}  // namespace foretrain
