#include "validate/host_replay/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "validate/host_replay/failure.hpp"

namespace foretrain {

namespace {

sockaddr_in address_of(const HostTask& task, int participant) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_of(participant)));
  const std::string& text = task.participants[static_cast<std::size_t>(participant)].address;
  if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) throw std::runtime_error("no address: " + text);
  return address;
}

Socket tcp_socket() {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.open()) fail_with("socket");
  return made;
}

void get_ready(const Socket& socket) {
  const int on = 1;
  if (setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail_with("TCP_NODELAY");
  if (fcntl(socket.number(), F_SETFL, O_NONBLOCK) != 0) fail_with("O_NONBLOCK");
}

Socket listen_for(const HostTask& task, int process, int count) {
  Socket waiting = tcp_socket();
  const int on = 1;
  setsockopt(waiting.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = address_of(task, process);
  if (bind(waiting.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(waiting.number(), std::max(count, 1)) != 0) {
    fail_with(fmt::format("port {}", port_of(process)));
  }
  return waiting;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Socket::~Socket() {
  if (number_ >= 0) close(number_);
}

std::vector<Socket> connect_with(const HostTask& task, int process, const std::vector<int>& peers,
                                 MeetingPoint& meeting) {
  std::vector<Socket> sockets(task.participants.size());
  const Socket waiting = listen_for(task, process, static_cast<int>(peers.size()));
  meeting.wait();  // everybody listens
  const std::int32_t self = process;
  for (const int peer : peers) {
    if (peer > process) continue;  // the higher number calls
    Socket made = tcp_socket();
    const sockaddr_in address = address_of(task, peer);
    if (connect(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        send(made.number(), &self, sizeof self, 0) != sizeof self) {
      fail_with(fmt::format("process {} at {}", peer, task.participants[static_cast<std::size_t>(peer)].address));
    }
    get_ready(made);
    sockets[static_cast<std::size_t>(peer)] = std::move(made);
  }
  for (auto calls = std::count_if(peers.begin(), peers.end(), [&](int p) { return p > process; }); calls > 0; --calls) {
    Socket made(accept4(waiting.number(), nullptr, nullptr, SOCK_CLOEXEC));
    std::int32_t peer = -1;
    if (!made.open() || recv(made.number(), &peer, sizeof peer, MSG_WAITALL) != sizeof peer) fail_with("accept");
    if (std::find(peers.begin(), peers.end(), peer) == peers.end()) throw std::runtime_error("a stranger called");
    get_ready(made);
    sockets[static_cast<std::size_t>(peer)] = std::move(made);
  }
  meeting.wait();
  return sockets;
}

std::size_t send_some(const Socket& socket, const void* data, std::size_t bytes, int peer) {
  const ssize_t count = send(socket.number(), data, bytes, MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail_with(fmt::format("sending to process {}", peer));
}

std::size_t receive_some(const Socket& socket, void* data, std::size_t bytes, int peer) {
  const ssize_t count = recv(socket.number(), data, bytes, 0);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0) throw std::runtime_error(fmt::format("process {} hung up", peer));
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail_with(fmt::format("receiving from process {}", peer));
}

}  // namespace foretrain
