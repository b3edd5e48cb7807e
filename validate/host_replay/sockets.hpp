// TCP connections between the processes of a replay.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "validate/host_replay/session.hpp"

namespace foretrain {

/// A file descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// The port at which a participant waits for others.
constexpr int port_of(int participant) { return 20000 + participant; }

/// Connects this process with each of `peers` (both sides must name each other); the result has a socket at each peer's
/// number. Connections do not block and send small messages at once. All processes of the task must call it. Throws
/// std::system_error or std::runtime_error.
std::vector<Socket> connect_with(const HostTask& task, int process, const std::vector<int>& peers,
                                 MeetingPoint& meeting);

/// Sends or receives what is possible now; 0 when nothing is. Throws std::runtime_error naming the peer when the
/// connection ended.
std::size_t send_some(const Socket& socket, const void* data, std::size_t bytes, int peer);
std::size_t receive_some(const Socket& socket, void* data, std::size_t bytes, int peer);

}  // namespace foretrain
