#include "validate/cuda/collective/reception.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <string>
#include <utility>

#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

/// A process of the run sends its greeting as soon as it is connected.
constexpr double patience_s = 10.0;
/// Silent callers beyond those who may be processes of the run.
constexpr std::size_t most_strangers = 64;

struct Caller {
  Descriptor socket;
  double until = 0.0;
  std::string said = {};
};

class Door {
 public:
  Door(const std::vector<Descriptor>& listeners, int size, const Token& token)
      : listeners_(listeners), size_(size), token_(token) {
    for (int r = 1; r < size; ++r) reception_.others.emplace_back();
    reception_.missing = size - 1;
  }

  Reception run(double deadline) && {
    while (reception_.missing > 0 && now() < deadline) {
      throw_if_interrupted();
      std::vector<pollfd> entries;
      for (const Descriptor& listener : listeners_) entries.push_back({listener.number(), POLLIN, 0});
      for (const Caller& caller : callers_) entries.push_back({caller.socket.number(), POLLIN, 0});
      if (poll(entries.data(), entries.size(), poll_step(deadline)) < 0 && errno != EINTR) {
        throw WorldError("rank 0 cannot wait for the others");
      }
      hear_callers();
      for (const Descriptor& listener : listeners_) open_to(listener);
    }
    return std::move(reception_);
  }

 private:
  /// All that wait at the port; the ones that have been silent longest make room for them.
  void open_to(const Descriptor& listener) {
    while (true) {
      Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.open() && (errno == EMFILE || errno == ENFILE) && !callers_.empty()) {
        send_away_first();
        continue;
      }
      if (!socket.open()) return;
      callers_.push_back({std::move(socket), now() + patience_s});
      hear(callers_.back());
      if (callers_.size() > static_cast<std::size_t>(size_) + most_strangers) send_away_first();
    }
  }

  void send_away_first() {
    if (callers_.front().socket.open()) ++reception_.strangers;
    callers_.pop_front();
  }

  void hear_callers() {
    for (Caller& caller : callers_) hear(caller);
    std::erase_if(callers_, [](const Caller& caller) { return !caller.socket.open(); });
  }

  /// Reads what has come, never more than a greeting.
  void hear(Caller& caller) {
    if (!caller.socket.open()) return;
    char bytes[greeting_bytes];
    const ssize_t n = recv(caller.socket.number(), bytes, greeting_bytes - caller.said.size(), 0);
    const bool nothing_yet = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n > 0) caller.said.append(bytes, static_cast<std::size_t>(n));
    if (caller.said.size() == greeting_bytes) return judge(caller);
    if (n > 0 || (nothing_yet && now() < caller.until)) return;
    ++reception_.strangers;
    caller.socket = Descriptor();
  }

  void judge(Caller& caller) {
    const std::optional<Greeting> greeting = read_greeting(caller.said, token_);
    Descriptor socket = std::move(caller.socket);  // which closes for a stranger
    if (greeting) return welcome(*greeting, std::move(socket));
    ++reception_.strangers;
  }

  void welcome(const Greeting& greeting, Descriptor socket) {
    if (greeting.size != size_) {
      throw WorldError("rank 0 was launched as one of " + std::to_string(size_) + " processes, and rank " +
                       std::to_string(greeting.rank) + " as one of " + std::to_string(greeting.size));
    }
    const bool possible = greeting.rank >= 1 && greeting.rank < size_;
    if (!possible || reception_.others[static_cast<std::size_t>(greeting.rank - 1)].open()) {
      throw WorldError("two processes say that they have rank " + std::to_string(greeting.rank));
    }
    no_delay(socket);
    reception_.others[static_cast<std::size_t>(greeting.rank - 1)] = std::move(socket);
    --reception_.missing;
  }

  const std::vector<Descriptor>& listeners_;
  int size_;
  const Token& token_;
  std::deque<Caller> callers_;  ///< that have not said who they are, those who came first in front
  Reception reception_;
};

}  // namespace

Reception receive_others(const std::vector<Descriptor>& listeners, int size, const Token& token, double deadline) {
  return Door(listeners, size, token).run(deadline);
}

}  // namespace foretrain::gpu
