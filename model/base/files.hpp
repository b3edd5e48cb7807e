// Text files in, whole files out; folders for files that are needed for a while.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "model/base/descriptor.hpp"

namespace foretrain {

/// Throws UsageError where a name holds a control character, a line end among them: terminals and scripts would carry
/// it out. Files of such names are neither read nor written.
void require_plain_name(const std::filesystem::path& path);

/// Limits to the bytes of a file that a user names, and to the silence of a pipe.
struct ReadingLimits {
  std::uintmax_t bytes = 16'000'000;
  std::chrono::milliseconds silence{60'000};
};

/// The bytes of a regular file; of "-" or "/dev/stdin" those of the standard input, which a session reads once. Throws
/// ScenarioError naming the file when it is missing, a directory, a device, a pipe, unreadable, larger than its limit,
/// or silent for longer than that.
std::string read_file(const std::filesystem::path& path, const ReadingLimits& limits);

/// The whole text of a file, as read_file() reads it, without a UTF-8 byte order mark. Throws ScenarioError when it is
/// no text, with the position of the first bad byte.
std::string read_text_file(const std::filesystem::path& path, std::uintmax_t limit = ReadingLimits().bytes);

/// Throws ScenarioError with the position of the first byte that is no text: not UTF-8, or a control character
/// (character_length of text.hpp).
void require_text(std::string_view content, const std::string& file);

/// Replaces the file in one step, with its permissions: writes a hidden file under a name that no other has, and
/// renames that. Throws UsageError when this fails (unwritable folder, full disk), leaving neither the temporary file
/// nor a changed target. A target that exists and is no regular file (/dev/stdout, /dev/full, a pipe) is written
/// directly.
void write_file(const std::filesystem::path& path, std::string_view content);
/// The same for a long text: what next() gives, until that is empty.
using NextPiece = std::function<std::string_view()>;
void write_file(const std::filesystem::path& path, const NextPiece& next);

/// An empty folder among the system's temporary files; it goes away with the object, with everything in it. Making one
/// removes those of this user's processes that were killed: a living one holds a lock on its own.
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
  Descriptor lock_;
};

}  // namespace foretrain
