#include "model/base/own_file.hpp"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

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

}  // namespace foretrain
