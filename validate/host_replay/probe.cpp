#include "validate/host_replay/probe.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>

#include "validate/host_replay/background.hpp"
#include "validate/host_replay/failure.hpp"
#include "validate/host_replay/sockets.hpp"

namespace foretrain {

namespace {

constexpr int datagram_batch = 50;

/// Blocking transfer of a whole message over a TCP connection.
void move_all(const Socket& socket, std::vector<char>& data, bool sending, int peer) {
  for (std::size_t done = 0; done < data.size();) {
    const std::size_t count = sending ? send_some(socket, data.data() + done, data.size() - done, peer)
                                      : receive_some(socket, data.data() + done, data.size() - done, peer);
    if (count == 0) {
      pollfd end{socket.number(), static_cast<short>(sending ? POLLOUT : POLLIN), 0};
      poll(&end, 1, 1000);
    }
    done += count;
  }
}

std::function<void()> tcp_work(const HostTask& task, int process, const Socket& socket, std::vector<char>& data) {
  const int peer = 1 - process;
  if (task.algorithm == "probe_round_trip") {
    return [&, process, peer] {
      for (int i = 0; i < task.keys; ++i) {
        move_all(socket, data, process == 0, peer);
        move_all(socket, data, process != 0, peer);
      }
    };
  }
  return [&, process, peer] {
    for (int i = 0; i < task.keys; ++i) move_all(socket, data, process == 0, peer);
    std::vector<char> answer(1);
    move_all(socket, answer, process != 0, peer);
  };
}

Socket udp_socket(const HostTask& task, int process) {
  Socket made(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!made.open()) fail_with("socket");
  const auto name_of = [&](int participant) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(port_of(participant)));
    inet_pton(AF_INET, task.participants[static_cast<std::size_t>(participant)].address.c_str(), &name.sin_addr);
    return name;
  };
  const sockaddr_in self = name_of(process), peer = name_of(1 - process);
  const int room = 4 << 20;
  setsockopt(made.number(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  setsockopt(made.number(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  const timeval patience{2, 0};
  setsockopt(made.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (bind(made.number(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0) fail_with("UDP port");
  if (connect(made.number(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) fail_with("UDP peer");
  return made;
}

/// A message is cut into datagrams that fit a packet, as a sender must (RFC 8085, section 3.2). Each batch is answered,
/// so that none is lost for want of room.
void udp_work(const HostTask& task, int process, const Socket& socket, std::vector<char>& data) {
  int under_way = 0;
  const auto settle = [&] {
    char answer = 1;
    if (process == 0 && recv(socket.number(), &answer, 1, 0) < 0) fail_with("no answer: datagrams were lost");
    if (process != 0 && send(socket.number(), &answer, 1, 0) < 0) fail_with("answering");
    under_way = 0;
  };
  for (int message = 0; message < task.keys; ++message) {
    for (std::size_t done = 0; done < data.size(); done += background_payload) {
      const std::size_t count = std::min<std::size_t>(background_payload, data.size() - done);
      if (process == 0) {
        if (send(socket.number(), data.data() + done, count, 0) < 0) fail_with("sending a datagram");
      } else if (recv(socket.number(), data.data() + done, count, 0) < 0) {
        fail_with("a datagram was lost");
      }
      if (++under_way == datagram_batch) settle();
    }
  }
  if (under_way > 0) settle();
}

}  // namespace

void run_probe(const HostTask& task, int process, MeetingPoint& meeting) {
  if (task.participants.size() != 2) throw std::runtime_error("a probe has two ends");
  std::vector<char> data(static_cast<std::size_t>(task.elements));
  if (task.algorithm == "probe_udp") {
    const Socket socket = udp_socket(task, process);
    measure(task, process, meeting, {[] {}, [&] { udp_work(task, process, socket, data); }, [] {}});
    return;
  }
  const std::vector<Socket> sockets = connect_with(task, process, {1 - process}, meeting);
  const Socket& socket = sockets[static_cast<std::size_t>(1 - process)];
  measure(task, process, meeting, {[] {}, tcp_work(task, process, socket, data), [] {}});
}

}  // namespace foretrain
