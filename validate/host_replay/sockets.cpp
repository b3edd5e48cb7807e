#include "validate/host_replay/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

sockaddr_in address_of(const WorkerTask& task, int participant) {
  return socket_address(task.participants[at_index(participant)].address, port_of(participant));
}

Descriptor tcp_socket() {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.open()) throw_system_error("socket");
  return made;
}

void get_ready(const Descriptor& socket) {
  const int on = 1;
  if (setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) throw_system_error("TCP_NODELAY");
  if (fcntl(socket.number(), F_SETFL, O_NONBLOCK) != 0) throw_system_error("O_NONBLOCK");
}

Descriptor listen_for(const WorkerTask& task, int process, int count) {
  Descriptor waiting = tcp_socket();
  const int on = 1;
  setsockopt(waiting.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = address_of(task, process);
  if (bind(waiting.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(waiting.number(), std::max(count, 1)) != 0) {
    throw_system_error(fmt::format("port {}", port_of(process)));
  }
  return waiting;
}

}  // namespace

sockaddr_in socket_address(const std::string& address, int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) throw std::runtime_error("no address: " + address);
  return name;
}

std::vector<Descriptor> connect_with(const WorkerTask& task, int process, const std::vector<int>& peers,
                                     ProcessBarrier& barrier) {
  std::vector<Descriptor> sockets(task.participants.size());
  const Descriptor waiting = listen_for(task, process, static_cast<int>(peers.size()));
  barrier.wait();  // every process listens
  const std::int32_t self = process;
  for (const int peer : peers) {
    if (peer > process) continue;  // the higher number calls
    Descriptor made = tcp_socket();
    const sockaddr_in address = address_of(task, peer);
    if (connect(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        send(made.number(), &self, sizeof self, 0) != sizeof self) {
      throw_system_error(fmt::format("process {} at {}", peer, task.participants[at_index(peer)].address));
    }
    get_ready(made);
    sockets[at_index(peer)] = std::move(made);
  }
  for (auto calls = std::count_if(peers.begin(), peers.end(), [&](int p) { return p > process; }); calls > 0; --calls) {
    Descriptor made(accept4(waiting.number(), nullptr, nullptr, SOCK_CLOEXEC));
    std::int32_t peer = -1;
    if (!made.open() || recv(made.number(), &peer, sizeof peer, MSG_WAITALL) != sizeof peer)
      throw_system_error("accept");
    if (std::find(peers.begin(), peers.end(), peer) == peers.end()) {
      throw std::runtime_error("a process called that is no peer");
    }
    get_ready(made);
    sockets[at_index(peer)] = std::move(made);
  }
  barrier.wait();
  return sockets;
}

std::size_t send_some(const Descriptor& socket, const void* data, std::size_t bytes, int peer) {
  const ssize_t count = send(socket.number(), data, bytes, MSG_NOSIGNAL);
  if (count >= 0) return at_index(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw_system_error(fmt::format("sending to process {}", peer));
}

std::size_t receive_some(const Descriptor& socket, void* data, std::size_t bytes, int peer) {
  const ssize_t count = recv(socket.number(), data, bytes, 0);
  if (count > 0) return at_index(count);
  if (count == 0) throw std::runtime_error(fmt::format("process {} hung up", peer));
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw_system_error(fmt::format("receiving from process {}", peer));
}

}  // namespace foretrain
