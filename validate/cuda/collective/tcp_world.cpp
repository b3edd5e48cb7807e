// A star of TCP connections: rank 0 in the middle. Messages are small and rare; latency is all that matters.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "validate/cuda/collective/greeting.hpp"
#include "validate/cuda/collective/tcp_socket.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

/// How rank 0 receives the other processes of its run. Anyone can find its port: callers without the token are sent
/// away, and neither silent ones nor many of them delay those who have it. Who is sent away for want of room comes
/// again.
struct Reception {
  std::vector<Descriptor> others;  ///< of ranks 1, 2, …; those that did not come are not open
  int missing = 0;
  int strangers = 0;  ///< callers that were sent away
};

/// A process of the run sends its greeting as soon as it has the challenge.
constexpr double patience_s = 10.0;
/// Silent callers beyond those who may be processes of the run.
constexpr std::size_t most_strangers = 512;

struct Caller {
  Descriptor socket;
  double until = 0.0;
  std::string challenge = challenge_text();
  std::string said = {};
};

/// Bytes that a new connection takes at once.
bool send_at_once(const Descriptor& socket, const std::string& bytes) {
  return send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// Whether the other end has closed the connection.
bool is_gone(const Descriptor& socket) {
  char byte = 0;
  return recv(socket.number(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

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
  /// Those who wait at the port; the ones that have been silent longest make room for them. Not all at once: those who
  /// are in are heard in between.
  void open_to(const Descriptor& listener) {
    constexpr int at_once = 64;
    for (int i = 0; i < at_once; ++i) {
      Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.open() && (errno == EMFILE || errno == ENFILE) && !callers_.empty()) {
        send_away_first();
        continue;
      }
      if (!socket.open()) return;
      callers_.push_back({std::move(socket), now() + patience_s});
      if (!send_at_once(callers_.back().socket, callers_.back().challenge)) callers_.back().until = 0.0;
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
    const std::optional<Greeting> greeting = read_greeting(caller.said, token_, caller.challenge);
    Descriptor socket = std::move(caller.socket);  // which closes for a stranger
    if (greeting && send_at_once(socket, answer_text(token_, caller.challenge, caller.said))) {
      return welcome(*greeting, std::move(socket));
    }
    ++reception_.strangers;
  }

  void welcome(const Greeting& greeting, Descriptor socket) {
    if (greeting.size != size_) {
      throw WorldError("rank 0 was launched as one of " + std::to_string(size_) + " processes, and rank " +
                       std::to_string(greeting.rank) + " as one of " + std::to_string(greeting.size));
    }
    const bool possible = greeting.rank >= 1 && greeting.rank < size_;
    Descriptor* const place = possible ? &reception_.others[static_cast<std::size_t>(greeting.rank - 1)] : nullptr;
    if (place == nullptr || (place->open() && !is_gone(*place))) {
      throw WorldError("two processes say that they have rank " + std::to_string(greeting.rank));
    }
    no_delay(socket);
    if (!place->open()) --reception_.missing;
    *place = std::move(socket);
  }

  const std::vector<Descriptor>& listeners_;
  int size_;
  const Token& token_;
  std::deque<Caller> callers_;  ///< that have not said who they are, those who came first in front
  Reception reception_;
};

/// Until all of `size` processes are here, or the deadline. Throws WorldError for processes with the token that do not
/// belong together: of another size, or two of one rank.
Reception receive_others(const std::vector<Descriptor>& listeners, int size, const Token& token, double deadline) {
  return Door(listeners, size, token).run(deadline);
}

/// Whether as many bytes came.
bool hear(const Descriptor& socket, std::string& text, double patience) {
  try {
    receive_all(socket, text.data(), text.size(), patience, "rank 0");
    return true;
  } catch (const WorldError&) {
    return false;
  }
}

/// Whether who is at the other end has proved that it is rank 0.
bool greet(const Descriptor& socket, const Greeting& greeting, const Token& token, double patience) {
  std::string challenge(challenge_bytes, '\0'), answer(answer_bytes, '\0');
  if (!hear(socket, challenge, patience) || !is_challenge(challenge)) return false;
  const std::string said = greeting_text(greeting, token, challenge);
  return send_at_once(socket, said) && hear(socket, answer, patience) && is_answer(answer, token, challenge, said);
}

void pause_until(double moment) {
  while (now() < moment) {
    throw_if_interrupted();
    poll(nullptr, 0, poll_step(moment));
  }
}

/// Tries until the deadline, less and less often: rank 0 may have no room, or a stranger may hold its port.
Descriptor meet_rank_0(const Meeting& meeting, const Greeting& greeting, const Token& token, double deadline) {
  constexpr double longest_pause_s = 2.0;
  double pause = 0.05;
  int tries = 0;
  for (; now() < deadline; ++tries, pause = std::min(2.0 * pause, longest_pause_s)) {
    Descriptor socket;
    try {
      socket = connect_to(meeting, deadline);
    } catch (const WorldError&) {
      if (tries == 0) throw;
      break;
    }
    no_delay(socket);
    if (greet(socket, greeting, token, std::min(patience_s, deadline - now()))) return socket;
    pause_until(std::min(deadline, now() + pause));
  }
  throw WorldError("who listens at " + meeting.host + ":" + meeting.port + " has not proved to be rank 0 in " +
                   std::to_string(tries) + " tries; it sends away who has another FORETRAIN_TOKEN");
}

Token token_of(const Rendezvous& rendezvous) {
  try {
    return Token(rendezvous.token);
  } catch (const std::invalid_argument& error) {
    throw WorldError(error.what());
  }
}

class TcpWorld final : public World {
 public:
  TcpWorld(const Launched& launched, const Rendezvous& rendezvous, double timeout)
      : World(launched.rank, launched.size), timeout_(timeout) {
    const Meeting meeting = parse_meeting(rendezvous.meeting);
    const Token token = token_of(rendezvous);
    const double deadline = now() + timeout;
    if (leads()) {
      receive(meeting, rendezvous.interface, token, deadline);
      barrier();
      return;
    }
    others_.push_back(meet_rank_0(meeting, {.rank = rank(), .size = size()}, token, deadline));
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
      each.resize(checked(length, 0));
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
  [[nodiscard]] const Descriptor& to(int rank) const { return others_[static_cast<std::size_t>(rank - 1)]; }

  void receive(const Meeting& meeting, const std::string& interface, const Token& token, double deadline) {
    Reception reception = receive_others(listen_at(meeting, interface), size(), token, deadline);
    if (reception.missing > 0) {
      throw WorldError(std::to_string(reception.missing) + " of " + std::to_string(size()) +
                       " processes did not come to " + meeting.host + ":" + meeting.port + " within " +
                       std::to_string(static_cast<int>(timeout_)) + " s; " + std::to_string(reception.strangers) +
                       " callers without the same FORETRAIN_TOKEN were sent away");
    }
    others_ = std::move(reception.others);
  }

  /// Before anything is made as long as somebody says.
  static std::size_t checked(std::uint64_t length, int whom) {
    if (length > longest_text) {
      throw WorldError(name_of(whom) + " speaks of a text of " + std::to_string(length) + " bytes: at most " +
                       std::to_string(longest_text) + " are taken");
    }
    return static_cast<std::size_t>(length);
  }

  void send_text(const Descriptor& socket, const std::string& text, int whom) const {
    const std::uint64_t length = checked(text.size(), rank());
    send_all(socket, &length, sizeof(length), timeout_, name_of(whom));
    send_all(socket, text.data(), text.size(), timeout_, name_of(whom));
  }
  [[nodiscard]] std::string receive_text(const Descriptor& socket, int whom) const {
    std::uint64_t length = 0;
    receive_all(socket, &length, sizeof(length), timeout_, name_of(whom));
    std::string text(checked(length, whom), '\0');
    receive_all(socket, text.data(), text.size(), timeout_, name_of(whom));
    return text;
  }

  double timeout_;
  std::vector<Descriptor> others_;  ///< rank 0: of ranks 1, 2, …; else the one to rank 0
};

}  // namespace

std::unique_ptr<World> make_tcp_world(const Launched& launched, const Rendezvous& rendezvous, double timeout) {
  return std::make_unique<TcpWorld>(launched, rendezvous, timeout);
}

}  // namespace foretrain::gpu
