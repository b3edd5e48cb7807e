// A folder for files that nobody needs afterwards.
#pragma once

#include <string>

namespace foretrain {

/// Empty, among the system's temporary files; it goes away with the object, whatever is in it.
class ScratchFolder {
 public:
  /// Throws UsageError when it cannot be made.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace foretrain
