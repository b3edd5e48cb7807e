#include "reports/serve/messages.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace foretrain {

namespace {

using Clock = std::chrono::steady_clock;

/// Waits until there is something to read.
Waited wait_for_bytes(int socket, Clock::time_point deadline, int stop) {
  pollfd waiting[2] = {{socket, POLLIN, 0}, {stop, POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = ::poll(waiting, 2, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (ready > 0) return waiting[0].revents != 0 ? Waited::message : Waited::stopped;
    if (ready == 0 && Clock::now() >= deadline) return Waited::too_long;
  }
}

/// Reads `size` bytes, waiting for each part.
Waited receive_bytes(int socket, char* bytes, std::size_t size, Clock::time_point deadline, int stop) {
  while (size > 0) {
    if (const Waited waited = wait_for_bytes(socket, deadline, stop); waited != Waited::message) return waited;
    const ssize_t count = ::recv(socket, bytes, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Waited::gone;
    bytes += count;
    size -= static_cast<std::size_t>(count);
  }
  return Waited::message;
}

/// A message of one byte with room for a descriptor.
struct Parcel {
  Parcel() {
    std::memset(room, 0, sizeof room);
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
  }
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))];
  msghdr header{};
};

}  // namespace

SocketPair::SocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_system_error("cannot talk to a process");
  ours = Descriptor(ends[0]);
  theirs = Descriptor(ends[1]);
}

bool send_message(int socket, std::string_view message) {
  const std::size_t length = message.size();
  return send_all(socket, {reinterpret_cast<const char*>(&length), sizeof length}) && send_all(socket, message);
}

Waited receive_message(int socket, std::string& message, Clock::time_point deadline, int stop) {
  std::size_t length = 0;
  const Waited waited = receive_bytes(socket, reinterpret_cast<char*>(&length), sizeof length, deadline, stop);
  if (waited != Waited::message) return waited;
  message.resize(length);
  return receive_bytes(socket, message.data(), length, deadline, stop);
}

std::optional<std::string> receive_message(int socket) {
  std::string message;
  constexpr auto for_years = std::chrono::hours(1'000'000);
  if (receive_message(socket, message, Clock::now() + for_years, -1) != Waited::message) return std::nullopt;
  return message;
}

bool send_descriptor(int socket, const Descriptor& sent) {
  Parcel parcel;
  const int number = sent.number();
  if (sent.open()) {
    cmsghdr* carried = CMSG_FIRSTHDR(&parcel.header);
    carried->cmsg_level = SOL_SOCKET;
    carried->cmsg_type = SCM_RIGHTS;
    carried->cmsg_len = CMSG_LEN(sizeof number);
    std::memcpy(CMSG_DATA(carried), &number, sizeof number);
  } else {
    parcel.header.msg_controllen = 0;
  }
  return ::sendmsg(socket, &parcel.header, MSG_NOSIGNAL) == 1;
}

Descriptor receive_descriptor(int socket) {
  Parcel parcel;
  ssize_t count = 0;
  do {
    count = ::recvmsg(socket, &parcel.header, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  const cmsghdr* carried = CMSG_FIRSTHDR(&parcel.header);
  if (count != 1 || carried == nullptr || carried->cmsg_type != SCM_RIGHTS) return {};
  int number = -1;
  std::memcpy(&number, CMSG_DATA(carried), sizeof number);
  return Descriptor(number);
}

}  // namespace foretrain
