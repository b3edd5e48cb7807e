#include "model/base/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "model/base/error.hpp"

namespace foretrain {

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "foretrain-replay-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw UsageError(pattern + ": " + std::generic_category().message(errno));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace foretrain
