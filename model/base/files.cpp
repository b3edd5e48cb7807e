#include "model/base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"

namespace foretrain {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string got, std::string expected) {
  throw ScenarioError({path.string(), 0, 0}, "", std::move(got), std::move(expected));
}

[[noreturn]] void cannot_write(const std::filesystem::path& path, int error) {
  throw UsageError(fmt::format("{}: cannot write: {}; choose a writable place with enough room", path.string(),
                               std::strerror(error)));
}

[[noreturn]] void refuse_size(const std::filesystem::path& path, std::uintmax_t limit) {
  refuse(path, fmt::format("is larger than {} MB", limit / 1'000'000), "a file of reasonable size");
}

void require_regular(int file, const std::filesystem::path& path, std::uintmax_t limit) {
  struct stat status {};
  if (::fstat(file, &status) != 0) refuse(path, std::strerror(errno), "a readable file");
  if (S_ISDIR(status.st_mode)) refuse(path, "is a directory", "the name of a file in it");
  if (!S_ISREG(status.st_mode)) {
    refuse(path, S_ISFIFO(status.st_mode) ? "is a pipe" : "is a device",
           "a regular file, or - for what is piped into this program");
  }
  if (static_cast<std::uintmax_t>(status.st_size) > limit) refuse_size(path, limit);
}

/// Reads a descriptor until its end, and waits for bytes no longer than `limits` allow.
std::string all_of(int file, const std::filesystem::path& path, const ReadingLimits& limits) {
  std::string content;
  char buffer[65536];
  while (true) {
    pollfd waiting{file, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(limits.silence.count()));
    const ssize_t count = ready > 0 ? ::read(file, buffer, sizeof buffer) : ready;
    if (count < 0 && errno == EINTR) continue;
    if (ready == 0 || (count < 0 && errno == EAGAIN)) {
      refuse(path, "gives nothing to read", "a regular file, or a pipe whose other end writes and closes it");
    }
    if (count < 0) refuse(path, fmt::format("cannot read: {}", std::strerror(errno)), "a readable file");
    if (count == 0) return content;
    content.append(buffer, static_cast<std::size_t>(count));
    if (content.size() > limits.bytes) refuse_size(path, limits.bytes);
  }
}

/// The piped input of this program.
struct StandardInput {
  std::optional<std::string> content;
};

bool write_pieces(int fd, const NextPiece& next) {
  for (std::string_view piece = next(); !piece.empty(); piece = next()) {
    if (!write_all(fd, piece)) return false;
  }
  return true;
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

/// A file under a name that no other has, removed unless it has taken another's place.
struct Unfinished {
  std::string name;
  ~Unfinished() {
    if (!name.empty()) ::unlink(name.c_str());
  }
};

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
  std::size_t at = 0;
  for (std::size_t length = 1; at < content.size() && length > 0; at += length) {
    const char c = content[at];
    length = (c >= ' ' && c <= '~') || c == '\n' ? 1 : character_length(content, at);
  }
  if (at == content.size()) return;
  const std::string_view before = content.substr(0, at), line = before.substr(before.rfind('\n') + 1);
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  throw ScenarioError({file, static_cast<int>(std::ranges::count(before, '\n')) + 1,
                       static_cast<int>(std::ranges::count_if(line, begins)) + 1},
                      "", fmt::format("byte 0x{:02x} is no text", static_cast<unsigned char>(content[at])),
                      "a text file in UTF-8, not a binary file");
}

void require_plain_name(const std::filesystem::path& path) {
  const std::string& name = path.native();
  for (std::size_t at = 0, length = 0; at < name.size(); at += std::max<std::size_t>(length, 1)) {
    length = character_length(name, at);
    const auto byte = static_cast<unsigned char>(name[at]);
    // Names need not be UTF-8. Of other alphabets, 0x80 to 0x9F are control characters, too.
    const bool control = byte < 0x20 || (length == 0 && byte < 0xA0);
    if (control) {
      throw UsageError(shortened(name, 400) + ": a control character in the name of a file; a name without");
    }
  }
}

std::string read_file(const std::filesystem::path& path, const ReadingLimits& limits) {
  if (path == "-" || path == "/dev/stdin") {
    std::optional<std::string>& known = session().part<StandardInput>().content;
    if (!known) known = all_of(STDIN_FILENO, path, limits);
    return *known;
  }
  require_plain_name(path);
  // Opening and reading wait for nobody: files of the kernel may have nothing to say, pipes no writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.open()) {
    refuse(path, fmt::format("cannot read: {}", std::strerror(errno)), "the name of a readable file");
  }
  require_regular(file.number(), path, limits.bytes);
  return all_of(file.number(), path, {.bytes = limits.bytes, .silence = {}});
}

std::string read_text_file(const std::filesystem::path& path, std::uintmax_t limit) {
  std::string content = read_file(path, {.bytes = limit});
  if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);
  require_text(content, path.string());
  return content;
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, [content]() mutable { return std::exchange(content, std::string_view()); });
}

void write_file(const std::filesystem::path& path, const NextPiece& next) {
  require_plain_name(path);
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
  std::string name = target.parent_path() / ".foretrain-XXXXXX";
  Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  Unfinished unfinished{file.open() ? name : ""};
  const bool written = file.open() && ::fchmod(file.number(), mode_of(target)) == 0 &&
                       write_pieces(file.number(), next) && file.close() && ::rename(name.c_str(), target.c_str()) == 0;
  if (!written) cannot_write(path, errno);
  unfinished.name.clear();
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
