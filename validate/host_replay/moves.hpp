// Bytes on their way between a process and its peers, all at the same time.
#pragma once

#include <cstddef>
#include <vector>

#include "model/base/descriptor.hpp"

namespace foretrain {

/// What one process sends and receives in a phase: messages between the same two processes follow each other, all
/// others move side by side.
class Moves {
 public:
  void send(int peer, const char* memory, std::size_t bytes);
  void receive(int peer, char* memory, std::size_t bytes);
  /// Adds what comes to the numbers that are there.
  void add(int peer, float* numbers, std::size_t count);

  /// Until all of it is done, then forgets it. `sockets`: by peer. Throws what send_some() and receive_some() throw.
  void run(const std::vector<Descriptor>& sockets);

 private:
  struct Moving {
    char* memory = nullptr;
    std::size_t left = 0;
    bool added = false;
  };
  struct Peer {
    int number = 0;
    std::vector<Moving> out, in;
    std::size_t next_out = 0, next_in = 0;
    // A number whose bytes have not all come yet.
    char partial[sizeof(float)] = {};
    std::size_t partial_bytes = 0;
    [[nodiscard]] bool sending() const { return next_out < out.size(); }
    [[nodiscard]] bool receiving() const { return next_in < in.size(); }
  };

  Peer& peer_of(int number);
  static void send_from(Peer& peer, const Descriptor& socket);
  void receive_to(Peer& peer, const Descriptor& socket);

  std::vector<Peer> peers_;
  std::vector<char> scratch_;  // allocated by operator new: aligned for any type
};

}  // namespace foretrain
