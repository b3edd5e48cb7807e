// Processes of one machine: a star of local sockets with rank 0 in the middle. They meet at a name (unix(7),
// "abstract"), and the kernel says of who is at the other end whether it is a process of the same user.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "model/base/descriptor.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

struct Greeting {
  int rank = 0, size = 0;
};

std::string name_of(int rank) { return "the process of rank " + std::to_string(rank); }

/// False at the deadline. Waits in steps, between which the user's wish to end is looked for.
bool ready(const Descriptor& socket, short events, double deadline) {
  for (;;) {
    throw_if_interrupted();
    pollfd entry{socket.number(), events, 0};
    const int step = static_cast<int>(std::clamp((deadline - now()) * 1e3, 0.0, 200.0)) + 1;
    if (poll(&entry, 1, step) > 0) return true;
    if (now() >= deadline) return false;
  }
}

/// `move`: send or recv, called until all bytes went. Throws WorldError about the rank at the other end.
template <typename Move>
void move_all(const Descriptor& socket, std::size_t bytes, short events, double timeout, int whom, const Move& move) {
  const double deadline = now() + timeout;
  for (std::size_t done = 0; done < bytes;) {
    if (!ready(socket, events, deadline)) {
      throw WorldError(name_of(whom) + " did not answer within " + std::to_string(static_cast<int>(timeout)) + " s");
    }
    const ssize_t n = move(done);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) throw WorldError(name_of(whom) + " is gone");
    done += static_cast<std::size_t>(n);
  }
}

struct Address {
  explicit Address(const std::string& meeting) : name(meeting) {
    bytes.sun_family = AF_UNIX;
    if (meeting.size() + 1 > sizeof(bytes.sun_path)) throw WorldError("FORETRAIN_MEETING=" + meeting + ": too long");
    std::memcpy(bytes.sun_path + 1, meeting.data(), meeting.size());  // behind a zero: no file
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + meeting.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }

  std::string name;
  sockaddr_un bytes{};
  socklen_t length = 0;
};

bool is_of_this_user(const Descriptor& socket) {
  ucred other{};
  socklen_t length = sizeof(other);
  return getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == getuid();
}

class LocalWorld final : public World {
 public:
  LocalWorld(const Launched& launched, const std::string& meeting, double timeout)
      : World(launched.rank, launched.size), timeout_(timeout), others_(leads() ? std::max(1, size()) - 1 : 1) {
    const Address address(meeting);
    leads() ? receive_others(address) : meet_rank_0(address);
    barrier();
  }

  void broadcast(void* data, std::size_t bytes) override {
    if (!leads()) return receive(0, data, bytes);
    for (int r = 1; r < size(); ++r) send(r, data, bytes);
  }

  std::vector<std::string> gather(const std::string& text) override {
    std::vector<std::string> texts(static_cast<std::size_t>(size()));
    texts[static_cast<std::size_t>(rank())] = text;
    if (!leads()) send_text(text);
    for (int r = 1; leads() && r < size(); ++r) texts[static_cast<std::size_t>(r)] = receive_text(r);
    for (std::string& each : texts) {
      std::size_t length = each.size();
      broadcast(&length, sizeof(length));
      each.resize(length);
      broadcast(each.data(), length);
    }
    return texts;
  }

  double maximum(double value) override {
    if (!leads()) send(0, &value, sizeof(value));
    for (int r = 1; leads() && r < size(); ++r) {
      double other = 0.0;
      receive(r, &other, sizeof(other));
      value = std::max(value, other);
    }
    broadcast(&value, sizeof(value));
    return value;
  }

  [[nodiscard]] std::string transport() const override { return "local"; }

 private:
  [[nodiscard]] const Descriptor& to(int whom) const {
    return others_[static_cast<std::size_t>(leads() ? whom - 1 : 0)];
  }
  void send(int whom, const void* data, std::size_t bytes) const {
    move_all(to(whom), bytes, POLLOUT, timeout_, whom, [&](std::size_t done) {
      return ::send(to(whom).number(), static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL);
    });
  }
  void receive(int whom, void* data, std::size_t bytes) const {
    move_all(to(whom), bytes, POLLIN, timeout_, whom, [&](std::size_t done) {
      return ::recv(to(whom).number(), static_cast<char*>(data) + done, bytes - done, 0);
    });
  }
  void send_text(const std::string& text) const {
    const std::size_t length = text.size();
    send(0, &length, sizeof(length));
    send(0, text.data(), length);
  }
  [[nodiscard]] std::string receive_text(int whom) const {
    std::size_t length = 0;
    receive(whom, &length, sizeof(length));
    std::string text(length, '\0');
    receive(whom, text.data(), length);
    return text;
  }

  void receive_others(const Address& address) {
    const double deadline = now() + timeout_;
    const Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(listener.number(), address.get(), address.length) != 0 || listen(listener.number(), size()) != 0) {
      throw WorldError("rank 0 cannot listen at " + address.name + ": " + std::strerror(errno));
    }
    for (int missing = size() - 1; missing > 0;) {
      if (!ready(listener, POLLIN, deadline)) {
        throw WorldError(std::to_string(missing) + " of " + std::to_string(size()) + " processes did not come within " +
                         std::to_string(static_cast<int>(timeout_)) + " s");
      }
      Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.open() || !is_of_this_user(socket)) continue;
      welcome(std::move(socket));
      --missing;
    }
  }

  void welcome(Descriptor socket) {
    Greeting other;
    move_all(socket, sizeof(other), POLLIN, timeout_, 1,
             [&](std::size_t) { return ::recv(socket.number(), &other, sizeof(other), MSG_WAITALL); });
    if (other.size != size()) {
      throw WorldError("rank 0 was launched as one of " + std::to_string(size()) + " processes, and rank " +
                       std::to_string(other.rank) + " as one of " + std::to_string(other.size));
    }
    const bool possible = other.rank >= 1 && other.rank < size();
    if (!possible || to(other.rank).open()) {
      throw WorldError("two processes say that they have rank " + std::to_string(other.rank));
    }
    others_[static_cast<std::size_t>(other.rank - 1)] = std::move(socket);
  }

  /// Tries until rank 0 listens.
  void meet_rank_0(const Address& address) {
    const double deadline = now() + timeout_;
    others_[0] = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    while (connect(to(0).number(), address.get(), address.length) != 0) {
      throw_if_interrupted();
      if (now() > deadline) throw WorldError("rank 0 does not listen at " + address.name + ": " + std::strerror(errno));
      usleep(20'000);
    }
    if (!is_of_this_user(to(0))) throw WorldError("who listens at " + address.name + " is of another user");
    const Greeting greeting{.rank = rank(), .size = size()};
    send(0, &greeting, sizeof(greeting));
  }

  double timeout_;
  std::vector<Descriptor> others_;  ///< rank 0: of ranks 1, 2, …; else the one to rank 0
};

}  // namespace

std::unique_ptr<World> make_local_world(const Launched& launched, const std::string& meeting, double timeout) {
  return std::make_unique<LocalWorld>(launched, meeting, timeout);
}

}  // namespace foretrain::gpu
