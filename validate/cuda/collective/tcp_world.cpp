// A star of TCP connections: rank 0 in the middle. Messages are small and rare; latency is all that matters.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "validate/cuda/collective/greeting.hpp"
#include "validate/cuda/collective/reception.hpp"
#include "validate/cuda/collective/tcp_socket.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

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
    others_.push_back(connect_to(meeting, deadline));
    no_delay(others_[0]);
    const std::string greeting = greeting_text({.rank = rank(), .size = size()}, token);
    try {
      send_all(others_[0], greeting.data(), greeting.size(), timeout_, name_of(0));
      barrier();
    } catch (const WorldError& error) {
      throw WorldError(std::string(error.what()) + "; it sends away who has another FORETRAIN_TOKEN");
    }
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
