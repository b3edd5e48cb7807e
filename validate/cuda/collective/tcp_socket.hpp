// TCP connections between the processes of one run. Everything waits with a limit, in steps that let the user end it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace foretrain::gpu {

/// Closes what it holds.
class Socket {
 public:
  explicit Socket(int handle = -1) : handle_(handle) {}
  ~Socket();
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  [[nodiscard]] int get() const { return handle_; }
  [[nodiscard]] bool open() const { return handle_ >= 0; }

 private:
  int handle_;
};

/// Where rank 0 listens, as the others know it.
struct Meeting {
  std::string host, port;
};

/// "node17:29500", "[fe80::1]:29500". Throws WorldError for anything else.
Meeting parse_meeting(const std::string& text);

/// Listens at the addresses of the network interface of this name or address; where none is named, at those that this
/// machine knows the meeting's host by. Throws WorldError where there are none, or the port is taken.
std::vector<Socket> listen_at(const Meeting& meeting, const std::string& interface);

/// Tries until the deadline: rank 0 may not listen yet. Throws WorldError.
Socket connect_to(const Meeting& meeting, double deadline);

/// Messages are small, and their latency is all that matters.
void no_delay(const Socket& socket);

/// Throw WorldError, about `whom`, after `timeout` seconds or when the other end is closed.
void send_all(const Socket& socket, const void* data, std::size_t bytes, double timeout, const std::string& whom);
void receive_all(const Socket& socket, void* data, std::size_t bytes, double timeout, const std::string& whom);

/// Milliseconds that a call of poll may wait: the user's wish to end is looked for in between.
int poll_step(double deadline);

}  // namespace foretrain::gpu
