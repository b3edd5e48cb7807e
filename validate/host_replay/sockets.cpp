#include "validate/host_replay/sockets.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <stdexcept>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "validate/host_replay/namespaces.hpp"

namespace foretrain {

sockaddr_in socket_address(int host, int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, host_address(host).c_str(), &name.sin_addr);
  return name;
}

Descriptor new_socket() {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.open()) throw_system_error("socket");
  return made;
}

Descriptor listen_at(int host, int port, int count) {
  Descriptor waiting = new_socket();
  const int on = 1;
  setsockopt(waiting.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = socket_address(host, port);
  if (bind(waiting.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(waiting.number(), std::max(count, 1)) != 0) {
    throw_system_error(fmt::format("port {}", port));
  }
  return waiting;
}

std::vector<Descriptor> connect_with(const WorkerTask& task, int process, const std::vector<int>& peers,
                                     ProcessBarrier& barrier) {
  std::vector<Descriptor> sockets(task.hosts.size());
  const auto host_of = [&](int participant) { return task.hosts[at_index(participant)]; };
  const Descriptor waiting = listen_at(host_of(process), port_of(process), static_cast<int>(peers.size()));
  barrier.wait();  // every process listens
  const std::int32_t self = process;
  for (const int peer : peers) {
    if (peer > process) continue;  // the higher number calls
    Descriptor made = new_socket();
    const sockaddr_in address = socket_address(host_of(peer), port_of(peer));
    if (connect(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::send(made.number(), &self, sizeof self, 0) != sizeof self) {
      throw_system_error(fmt::format("process {} on host {}", peer, host_of(peer)));
    }
    sockets[at_index(peer)] = std::move(made);
  }
  for (auto calls = std::ranges::count_if(peers, [&](int p) { return p > process; }); calls > 0; --calls) {
    Descriptor made(accept4(waiting.number(), nullptr, nullptr, SOCK_CLOEXEC));
    std::int32_t peer = -1;
    if (!made.open() || recv(made.number(), &peer, sizeof peer, MSG_WAITALL) != sizeof peer)
      throw_system_error("accept");
    if (std::ranges::find(peers, peer) == peers.end()) throw std::runtime_error("a process called that is no peer");
    sockets[at_index(peer)] = std::move(made);
  }
  for (const int peer : peers) {
    const int at_once = 1;
    setsockopt(sockets[at_index(peer)].number(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  }
  barrier.wait();
  return sockets;
}

std::size_t send_bytes(const Descriptor& socket, const void* data, std::size_t bytes, int flags, int peer) {
  const ssize_t count = ::send(socket.number(), data, bytes, flags | MSG_NOSIGNAL);
  if (count >= 0) return at_index(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw_system_error(fmt::format("sending to process {}", peer));
}

std::size_t receive_bytes(const Descriptor& socket, void* data, std::size_t bytes, int flags, int peer) {
  const ssize_t count = recv(socket.number(), data, bytes, flags);
  if (count > 0) return at_index(count);
  if (count == 0) throw std::runtime_error(fmt::format("process {} hung up", peer));
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw_system_error(fmt::format("receiving from process {}", peer));
}

}  // namespace foretrain
