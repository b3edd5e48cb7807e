// File descriptors that close themselves.
#pragma once

#include <fcntl.h>
#include <unistd.h>

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

/// What is written to one end is read from the other. Programs that this one starts do not inherit the ends.
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
