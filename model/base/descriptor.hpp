// File descriptors that close themselves.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"

namespace foretrain {

/// A file, a socket or one end of a pipe.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool open() const { return number_ >= 0; }
  /// Returns whether it was open and everything written to it is kept: some file systems report a full disk only here.
  bool close() { return open() && ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_ = -1;
};

/// Hands bytes over by `put`, as write() and send() do; false, with errno set, where not all of them went.
template <typename Put>
bool put_all(std::string_view bytes, const Put& put) {
  while (!bytes.empty()) {
    const ssize_t gone = put(bytes.data(), bytes.size());
    if (gone < 0 && errno == EINTR) continue;
    if (gone <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(gone));
  }
  return true;
}
inline bool write_all(int file, std::string_view bytes) {
  return put_all(bytes, [file](const char* data, std::size_t size) { return ::write(file, data, size); });
}
/// Returns false, too, if the other side is gone, without a signal.
inline bool send_all(int socket, std::string_view bytes) {
  return put_all(bytes,
                 [socket](const char* data, std::size_t size) { return ::send(socket, data, size, MSG_NOSIGNAL); });
}

/// A pipe: bytes written to one end are read from the other. Programs that this one starts do not inherit the ends.
struct Pipe {
  /// Throws std::system_error when the operating system refuses it.
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw_system_error("pipe");
    reader = Descriptor(ends[0]);
    writer = Descriptor(ends[1]);
  }
  Descriptor reader, writer;
};

}  // namespace foretrain
