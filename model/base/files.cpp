#include "model/base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/utf8.hpp"

namespace foretrain {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string got, std::string expected) {
  throw ScenarioError({path.string(), 0, 0}, "", std::move(got), std::move(expected));
}

[[noreturn]] void cannot_write(const std::filesystem::path& path, int error) {
  throw UsageError(fmt::format("{}: cannot write: {}; choose a writable place with enough room", path.string(),
                               std::strerror(error)));
}

/// False with errno set when not everything could be written.
bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool write_pieces(int fd, const NextPiece& next) {
  for (std::string_view piece = next(); !piece.empty(); piece = next()) {
    if (!write_all(fd, piece)) return false;
  }
  return true;
}

/// False with errno set where that cannot be.
bool give_name(int file, const std::string& name) {
  ::unlink(name.c_str());
  return ::linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", file).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) ==
         0;
}

/// Permissions of what replaces a file: its own, or a new file's usual ones.
mode_t mode_of(const std::filesystem::path& target) {
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0) return status.st_mode & 0777;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

void write_directly(const std::filesystem::path& path, const NextPiece& next) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.open() || !write_pieces(file.number(), next)) cannot_write(path, errno);
}

constexpr std::string_view scratch_prefix = "foretrain-scratch-";

/// The folder, locked until the descriptor is closed; not open where that cannot be.
Descriptor locked_folder(const std::string& path, int how) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.open() && ::flock(folder.number(), how) != 0) folder.close();
  return folder;
}

void remove_scratch_of_the_dead(const std::filesystem::path& parent) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    struct stat status {};
    if (!entry.path().filename().string().starts_with(scratch_prefix)) continue;
    if (::lstat(entry.path().c_str(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    const Descriptor lock = locked_folder(entry.path().string(), LOCK_EX | LOCK_NB);
    if (lock.open()) std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace

void require_text(std::string_view content, const std::string& file) {
  SourcePosition where{file, 1, 1};
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t length = character_length(content, at);
    if (length == 0) {
      throw ScenarioError(where, "", fmt::format("byte 0x{:02x} is no text", static_cast<unsigned char>(content[at])),
                          "a text file in UTF-8, not a binary file");
    }
    if (content[at] == '\n') {
      ++where.line;
      where.column = 1;
    } else {
      ++where.column;
    }
    at += length;
  }
}

std::string read_text_file(const std::filesystem::path& path, std::uintmax_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) {
    refuse(path, fmt::format("cannot read: {}", std::strerror(errno)), "the name of a readable file");
  }
  struct stat status {};
  if (::fstat(file.number(), &status) == 0 && S_ISDIR(status.st_mode)) {
    refuse(path, "is a directory", "the name of a file in it");
  }
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t count = ::read(file.number(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(path, fmt::format("cannot read: {}", std::strerror(errno)), "a readable file");
    if (count == 0) break;
    content.append(buffer, static_cast<std::size_t>(count));
    if (content.size() > limit) {
      refuse(path, fmt::format("is larger than {} MB", limit / 1'000'000), "a text file of reasonable size");
    }
  }
  if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);
  require_text(content, path.string());
  return content;
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, [content]() mutable { return std::exchange(content, std::string_view()); });
}

void write_file(const std::filesystem::path& path, const NextPiece& next) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) cannot_write(path, EISDIR);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    write_directly(path, next);
    return;
  }
  // Through a symbolic link the file that it names is replaced, not the link.
  const std::filesystem::path target =
      std::filesystem::exists(status) ? std::filesystem::canonical(path, ignored) : path;
  // It has no name as long as it is not whole, so that a process that is killed leaves nothing; a few file systems need
  // one from the beginning.
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  std::string temporary = fmt::format("{}.{}", target.string(), ::getpid());
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  const bool nameless = file.open() && std::filesystem::exists("/proc/self/fd", ignored);
  if (!nameless) {
    temporary = target.string() + ".XXXXXX";
    file = Descriptor(::mkostemp(temporary.data(), O_CLOEXEC));
  }
  if (!file.open()) cannot_write(path, errno);
  const bool written = ::fchmod(file.number(), mode_of(target)) == 0 && write_pieces(file.number(), next) &&
                       (!nameless || give_name(file.number(), temporary)) && file.close() &&
                       ::rename(temporary.c_str(), target.c_str()) == 0;
  if (!written) {
    const int error = errno;
    ::unlink(temporary.c_str());
    cannot_write(path, error);
  }
}

ScratchFolder::ScratchFolder() {
  const std::filesystem::path parent = std::filesystem::temp_directory_path();
  remove_scratch_of_the_dead(parent);
  do {
    path_ = (parent / fmt::format("{}XXXXXX", scratch_prefix)).string();
    if (mkdtemp(path_.data()) == nullptr) throw UsageError(path_ + ": " + std::strerror(errno));
    lock_ = locked_folder(path_, LOCK_EX);
    // Between the two calls another process may have taken it for one that a dead process left.
  } while (!std::filesystem::exists(path_));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace foretrain
