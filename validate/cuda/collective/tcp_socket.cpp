#include "validate/cuda/collective/tcp_socket.hpp"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

constexpr int socket_type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

[[noreturn]] void fail(const std::string& what, int error) { throw WorldError(what + ": " + std::strerror(error)); }

/// Waits until something can be read or written; false after the deadline.
bool ready(int handle, short events, double deadline) {
  while (true) {
    throw_if_interrupted();
    if (now() >= deadline) return false;
    pollfd entry{.fd = handle, .events = events, .revents = 0};
    const int count = poll(&entry, 1, poll_step(deadline));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) fail("poll", errno);
  }
}

struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

Address address_of(const sockaddr* given, socklen_t length) {
  Address address;
  std::memcpy(&address.bytes, given, length);
  address.length = length;
  return address;
}

/// What a name or a number stands for; a text about the error where it stands for nothing.
std::vector<Address> look_up(const std::string& host, const std::string& port, int flags, std::string& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (status != 0) {
    error = gai_strerror(status);
    return {};
  }
  std::vector<Address> found;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) found.push_back(address_of(a->ai_addr, a->ai_addrlen));
  freeaddrinfo(list);
  return found;
}

/// Of this machine's network interface; none where there is no such one. `known` lists those that there are.
std::vector<Address> addresses_of(const std::string& interface, const std::string& port, std::string& known) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) fail("cannot list this machine's network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  const auto number = htons(static_cast<std::uint16_t>(std::stoi(port)));
  std::vector<Address> found;
  for (const ifaddrs* a = list; a != nullptr; a = a->ifa_next) {
    if (a->ifa_addr == nullptr) continue;
    const int family = a->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (known.find(a->ifa_name) == std::string::npos) known += std::string(known.empty() ? "" : ", ") + a->ifa_name;
    if (interface != a->ifa_name) continue;
    Address address = address_of(a->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (family == AF_INET) {
      reinterpret_cast<sockaddr_in*>(&address.bytes)->sin_port = number;
    } else {
      reinterpret_cast<sockaddr_in6*>(&address.bytes)->sin6_port = number;
    }
    found.push_back(address);
  }
  return found;
}

std::vector<Address> places_to_listen(const Meeting& meeting, const std::string& interface) {
  std::string error;
  if (interface.empty()) {
    std::vector<Address> found = look_up(meeting.host, meeting.port, 0, error);
    if (found.empty()) throw WorldError(meeting.host + ":" + meeting.port + ": " + error);
    return found;
  }
  std::string known;
  std::vector<Address> found = addresses_of(interface, meeting.port, known);
  if (found.empty()) found = look_up(interface, meeting.port, AI_NUMERICHOST, error);
  if (found.empty()) {
    throw WorldError("FORETRAIN_INTERFACE=" + interface + ": this machine has no such network interface; it has " +
                     known);
  }
  return found;
}

/// Not open where this machine does not have the address; `error` says why.
Descriptor listen_at(const Address& address, int& error) {
  Descriptor socket(::socket(address.bytes.ss_family, socket_type, 0));
  const int on = 1;
  if (socket.open()) setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (socket.open() && address.bytes.ss_family == AF_INET6) {
    setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  }
  const auto* place = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (socket.open() && bind(socket.number(), place, address.length) == 0 && listen(socket.number(), SOMAXCONN) == 0) {
    return socket;
  }
  error = errno;
  return Descriptor();
}

/// Not open where nobody listens there; `error` says why.
Descriptor connect_to(const Address& address, double deadline, int& error) {
  Descriptor socket(::socket(address.bytes.ss_family, socket_type, 0));
  if (!socket.open()) {
    error = errno;
    return Descriptor();
  }
  if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&address.bytes), address.length) == 0) return socket;
  error = errno;
  if (error != EINPROGRESS) return Descriptor();
  error = ETIMEDOUT;
  socklen_t length = sizeof(error);
  if (ready(socket.number(), POLLOUT, deadline)) getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? std::move(socket) : Descriptor();
}

}  // namespace

int free_port() {
  const Descriptor any(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const own = reinterpret_cast<sockaddr*>(&address);
  if (bind(any.number(), own, length) != 0 || getsockname(any.number(), own, &length) != 0) fail("no free port", errno);
  return ntohs(address.sin_port);
}

Meeting parse_meeting(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Meeting meeting;
  if (colon != std::string::npos) meeting = {text.substr(0, colon), text.substr(colon + 1)};
  if (meeting.host.size() > 2 && meeting.host.front() == '[' && meeting.host.back() == ']') {
    meeting.host = meeting.host.substr(1, meeting.host.size() - 2);
  }
  const bool digits = !meeting.port.empty() && meeting.port.size() <= 5 &&
                      meeting.port.find_first_not_of("0123456789") == std::string::npos;
  if (meeting.host.empty() || !digits || std::stoi(meeting.port) < 1 || std::stoi(meeting.port) > 65535) {
    throw WorldError("FORETRAIN_RENDEZVOUS=" + text + ": not of the form host:port, as in node17:29500");
  }
  return meeting;
}

std::vector<Descriptor> listen_at(const Meeting& meeting, const std::string& interface) {
  std::vector<Descriptor> listeners;
  int error = 0;
  for (const Address& address : places_to_listen(meeting, interface)) {
    Descriptor listener = listen_at(address, error);
    // The same port of another address may be a stranger's: the others must not take it for rank 0.
    if (!listener.open() && error == EADDRINUSE) fail("rank 0 cannot listen on port " + meeting.port, error);
    if (listener.open()) listeners.push_back(std::move(listener));
  }
  if (listeners.empty()) {
    fail("rank 0 cannot listen at " + (interface.empty() ? meeting.host : interface) + ":" + meeting.port +
             " (FORETRAIN_RENDEZVOUS names its machine, FORETRAIN_INTERFACE one of its network interfaces)",
         error);
  }
  return listeners;
}

Descriptor connect_to(const Meeting& meeting, double deadline) {
  constexpr double try_again_s = 5.0;  // a lost packet must not take all the time that there is
  int error = ETIMEDOUT;
  while (now() < deadline) {
    throw_if_interrupted();
    std::string unknown;
    const std::vector<Address> addresses = look_up(meeting.host, meeting.port, 0, unknown);
    if (addresses.empty()) throw WorldError(meeting.host + ":" + meeting.port + ": " + unknown);
    for (const Address& address : addresses) {
      Descriptor socket = connect_to(address, std::min(deadline, now() + try_again_s), error);
      if (socket.open()) return socket;
    }
    usleep(100'000);
  }
  fail("rank 0 does not listen at " + meeting.host + ":" + meeting.port, error);
}

void no_delay(const Descriptor& socket) {
  const int on = 1;
  setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void send_all(const Descriptor& socket, const void* data, std::size_t bytes, double timeout, const std::string& whom) {
  const double deadline = now() + timeout;
  for (std::size_t done = 0; done < bytes;) {
    if (!ready(socket.number(), POLLOUT, deadline)) throw WorldError(whom + " takes no message any more");
    const ssize_t n = send(socket.number(), static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) fail(whom + " is gone", errno);
    done += static_cast<std::size_t>(n);
  }
}

void receive_all(const Descriptor& socket, void* data, std::size_t bytes, double timeout, const std::string& whom) {
  const double deadline = now() + timeout;
  for (std::size_t done = 0; done < bytes;) {
    if (!ready(socket.number(), POLLIN, deadline)) {
      throw WorldError(whom + " did not answer within " + std::to_string(static_cast<int>(timeout)) + " s");
    }
    const ssize_t n = recv(socket.number(), static_cast<char*>(data) + done, bytes - done, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) fail(whom + " is gone", errno);
    if (n == 0) throw WorldError(whom + " is gone: it closed its connection");
    done += static_cast<std::size_t>(n);
  }
}

int poll_step(double deadline) { return static_cast<int>(std::clamp((deadline - now()) * 1e3, 0.0, 200.0)) + 1; }

}  // namespace foretrain::gpu
