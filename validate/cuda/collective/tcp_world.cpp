// A star of TCP connections: rank 0 in the middle. Messages are small and rare; latency is all that matters.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

[[noreturn]] void fail(const std::string& what, int error) { throw WorldError(what + ": " + std::strerror(error)); }

class Socket {
 public:
  explicit Socket(int handle = -1) : handle_(handle) {}
  ~Socket() {
    if (handle_ >= 0) close(handle_);
  }
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

/// Waits until something can be read or written, in steps that let the user end the work.
bool ready(int handle, short events, double deadline) {
  while (true) {
    throw_if_interrupted();
    const double left = deadline - now();
    if (left <= 0.0) return false;
    pollfd entry{.fd = handle, .events = events, .revents = 0};
    const int count = poll(&entry, 1, static_cast<int>(std::min(left * 1e3, 200.0)) + 1);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) fail("poll", errno);
  }
}

void send_all(const Socket& socket, const void* data, std::size_t bytes, double timeout, const std::string& whom) {
  const double deadline = now() + timeout;
  for (std::size_t done = 0; done < bytes;) {
    if (!ready(socket.get(), POLLOUT, deadline)) throw WorldError(whom + " takes no message any more");
    const ssize_t n = send(socket.get(), static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) fail(whom + " is gone", errno);
    done += static_cast<std::size_t>(n);
  }
}

void receive_all(const Socket& socket, void* data, std::size_t bytes, double timeout, const std::string& whom) {
  const double deadline = now() + timeout;
  for (std::size_t done = 0; done < bytes;) {
    if (!ready(socket.get(), POLLIN, deadline)) {
      throw WorldError(whom + " did not answer within " + std::to_string(static_cast<int>(timeout)) + " s");
    }
    const ssize_t n = recv(socket.get(), static_cast<char*>(data) + done, bytes - done, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) fail(whom + " is gone", errno);
    if (n == 0) throw WorldError(whom + " is gone: it closed its connection");
    done += static_cast<std::size_t>(n);
  }
}

struct Meeting {
  std::string host, port;
};

/// "node17:29500", "[fe80::1]:29500".
Meeting parse(const std::string& text) {
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

struct Addresses {
  Addresses(const char* host, const std::string& port, int flags) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    const int error = getaddrinfo(host, port.c_str(), &hints, &list);
    if (error != 0) throw WorldError(std::string(host ? host : "*") + ":" + port + ": " + gai_strerror(error));
  }
  ~Addresses() { freeaddrinfo(list); }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  addrinfo* list = nullptr;
};

/// Listens on every interface: a machine's name may mean another address on the machine itself than elsewhere.
Socket listen_at(const std::string& port) {
  const Addresses addresses(nullptr, port, AI_PASSIVE);
  int error = 0;
  for (const int family : {AF_INET6, AF_INET}) {  // an IPv6 socket takes IPv4 connections, too
    for (const addrinfo* a = addresses.list; a != nullptr; a = a->ai_next) {
      if (a->ai_family != family) continue;
      Socket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const int on = 1;
      const int off = 0;
      if (socket.open()) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      if (socket.open() && family == AF_INET6) {
        setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
      }
      if (socket.open() && bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 && listen(socket.get(), SOMAXCONN) == 0) {
        return socket;
      }
      error = errno;
    }
  }
  fail("rank 0 cannot listen on port " + port + " (see FORETRAIN_RENDEZVOUS)", error);
}

void no_delay(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Socket connect_to(const Meeting& meeting, double deadline) {
  int error = ETIMEDOUT;
  while (now() < deadline) {
    throw_if_interrupted();
    const Addresses addresses(meeting.host.c_str(), meeting.port, 0);
    for (const addrinfo* a = addresses.list; a != nullptr; a = a->ai_next) {
      Socket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (socket.open() && connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0) return socket;
      error = errno;
    }
    usleep(100'000);  // rank 0 may not listen yet
  }
  fail("rank 0 does not listen at " + meeting.host + ":" + meeting.port, error);
}

struct Hello {
  char magic[16] = "foretrain-gpu 1";
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

class TcpWorld final : public World {
 public:
  TcpWorld(const Launched& launched, const Meeting& meeting, double timeout)
      : World(launched.rank, launched.size), timeout_(timeout) {
    const double deadline = now() + timeout;
    if (leads()) {
      accept_all(meeting, deadline);
    } else {
      others_.push_back(connect_to(meeting, deadline));
      no_delay(others_[0]);
      Hello hello;
      hello.rank = rank();
      hello.size = size();
      send_all(others_[0], &hello, sizeof(hello), timeout_, name_of(0));
    }
    barrier();
  }

  void broadcast(void* data, std::size_t bytes) override {
    if (leads()) {
      for (int r = 1; r < size(); ++r) send_all(to(r), data, bytes, timeout_, name_of(r));
    } else {
      receive_all(others_[0], data, bytes, timeout_, name_of(0));
    }
  }

  std::vector<std::string> gather(const std::string& text) override {
    std::vector<std::string> texts(static_cast<std::size_t>(size()));
    texts[static_cast<std::size_t>(rank())] = text;
    if (!leads()) send_text(others_[0], text, 0);
    for (int r = 1; leads() && r < size(); ++r) texts[static_cast<std::size_t>(r)] = receive_text(to(r), r);
    for (std::string& each : texts) {
      std::uint64_t length = each.size();
      broadcast(&length, sizeof(length));
      each.resize(length);
      broadcast(each.data(), length);
    }
    return texts;
  }

  double maximum(double value) override {
    if (!leads()) send_all(others_[0], &value, sizeof(value), timeout_, name_of(0));
    for (int r = 1; leads() && r < size(); ++r) {
      double other = 0.0;
      receive_all(to(r), &other, sizeof(other), timeout_, name_of(r));
      value = std::max(value, other);
    }
    broadcast(&value, sizeof(value));
    return value;
  }

  [[nodiscard]] std::string transport() const override { return "TCP"; }

 private:
  static std::string name_of(int rank) { return "the process of rank " + std::to_string(rank); }
  [[nodiscard]] const Socket& to(int rank) const { return others_[static_cast<std::size_t>(rank - 1)]; }

  void accept_all(const Meeting& meeting, double deadline) {
    const Socket listener = listen_at(meeting.port);
    others_.resize(static_cast<std::size_t>(size() - 1));
    for (int missing = size() - 1; missing > 0;) {
      if (!ready(listener.get(), POLLIN, deadline)) {
        throw WorldError(std::to_string(missing) + " of " + std::to_string(size()) + " processes did not come to " +
                         meeting.host + ":" + meeting.port + " within " + std::to_string(static_cast<int>(timeout_)) +
                         " s");
      }
      Socket caller(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (caller.open() && welcome(std::move(caller))) --missing;
    }
  }

  /// False for callers that are none of ours, such as port scanners.
  bool welcome(Socket caller) {
    const Hello expected;
    Hello hello;
    try {
      receive_all(caller, &hello, sizeof(hello), 2.0, "a caller");
    } catch (const WorldError&) {
      return false;
    }
    if (std::memcmp(hello.magic, expected.magic, sizeof(hello.magic)) != 0) return false;
    if (hello.size != size()) {
      throw WorldError("rank 0 was launched as one of " + std::to_string(size()) + " processes, and rank " +
                       std::to_string(hello.rank) + " as one of " + std::to_string(hello.size));
    }
    if (hello.rank < 1 || hello.rank >= size() || to(hello.rank).open()) {
      throw WorldError("two processes say that they have rank " + std::to_string(hello.rank));
    }
    no_delay(caller);
    others_[static_cast<std::size_t>(hello.rank - 1)] = std::move(caller);
    return true;
  }

  void send_text(const Socket& socket, const std::string& text, int whom) const {
    const std::uint64_t length = text.size();
    send_all(socket, &length, sizeof(length), timeout_, name_of(whom));
    send_all(socket, text.data(), text.size(), timeout_, name_of(whom));
  }
  [[nodiscard]] std::string receive_text(const Socket& socket, int whom) const {
    std::uint64_t length = 0;
    receive_all(socket, &length, sizeof(length), timeout_, name_of(whom));
    std::string text(static_cast<std::size_t>(length), '\0');
    receive_all(socket, text.data(), text.size(), timeout_, name_of(whom));
    return text;
  }

  double timeout_;
  std::vector<Socket> others_;  ///< rank 0: of ranks 1, 2, …; else the one to rank 0
};

}  // namespace

std::unique_ptr<World> make_tcp_world(const Launched& launched, const std::string& meeting, double timeout) {
  return std::make_unique<TcpWorld>(launched, parse(meeting), timeout);
}

}  // namespace foretrain::gpu
