#include "validate/host_replay/worker.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "validate/host_replay/background_traffic.hpp"
#include "validate/host_replay/sockets.hpp"

namespace foretrain {

namespace {

constexpr int datagram_batch = 50;

/// Blocking transfer of a whole message over a TCP connection.
void move_all(const Descriptor& socket, std::vector<char>& data, bool sending, int peer) {
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

std::function<void()> tcp_work(const WorkerTask& task, int process, const Descriptor& socket, std::vector<char>& data) {
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

Descriptor udp_socket(const WorkerTask& task, int process) {
  Descriptor made(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!made.open()) throw_system_error("socket");
  const auto name_of = [&](int participant) {
    return socket_address(task.participants[at_index(participant)].address, port_of(participant));
  };
  const sockaddr_in self = name_of(process), peer = name_of(1 - process);
  const int room = 4 << 20;
  setsockopt(made.number(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  setsockopt(made.number(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  const timeval patience{2, 0};
  setsockopt(made.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (bind(made.number(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0) throw_system_error("UDP port");
  if (connect(made.number(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0)
    throw_system_error("UDP peer");
  return made;
}

/// A message is cut into datagrams that fit a packet, as a sender must (RFC 8085, section 3.2). Each batch is answered,
/// so that none is lost for want of room.
void udp_work(const WorkerTask& task, int process, const Descriptor& socket, std::vector<char>& data) {
  int under_way = 0;
  const auto settle = [&] {
    char answer = 1;
    if (process == 0 && recv(socket.number(), &answer, 1, 0) < 0) throw_system_error("no answer: datagrams were lost");
    if (process != 0 && send(socket.number(), &answer, 1, 0) < 0) throw_system_error("answering");
    under_way = 0;
  };
  for (int message = 0; message < task.keys; ++message) {
    for (std::size_t done = 0; done < data.size(); done += background_payload) {
      const std::size_t count = std::min<std::size_t>(background_payload, data.size() - done);
      if (process == 0) {
        if (send(socket.number(), data.data() + done, count, 0) < 0) throw_system_error("sending a datagram");
      } else if (recv(socket.number(), data.data() + done, count, 0) < 0) {
        throw_system_error("a datagram was lost");
      }
      if (++under_way == datagram_batch) settle();
    }
  }
  if (under_way > 0) settle();
}

}  // namespace

void run_probe(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  if (task.participants.size() != 2) throw std::runtime_error("a probe has two ends");
  std::vector<char> data(at_index(task.elements));
  if (task.algorithm == "probe_udp") {
    const Descriptor socket = udp_socket(task, process);
    measure(task, process, barrier, {[] {}, [&] { udp_work(task, process, socket, data); }, [] {}});
    return;
  }
  const std::vector<Descriptor> sockets = connect_with(task, process, {1 - process}, barrier);
  const Descriptor& socket = sockets[at_index(1 - process)];
  const std::function<void()> work = tcp_work(task, process, socket, data);
  measure(task, process, barrier, {[] {}, work, [] {}});
}

}  // namespace foretrain
