#include "validate/host_replay/moves.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "model/base/number.hpp"
#include "validate/host_replay/sockets.hpp"

namespace foretrain {

namespace {

constexpr std::size_t added_at_once = std::size_t{256} << 10U;  // received, then added, while it is in the cache

}  // namespace

Moves::Peer& Moves::peer_of(int number) {
  const auto known = std::ranges::find(peers_, number, &Peer::number);
  if (known != peers_.end()) return *known;
  peers_.emplace_back().number = number;
  return peers_.back();
}

void Moves::send(int peer, const char* memory, std::size_t bytes) {
  if (bytes > 0) peer_of(peer).out.push_back({const_cast<char*>(memory), bytes});
}

void Moves::receive(int peer, char* memory, std::size_t bytes) {
  if (bytes > 0) peer_of(peer).in.push_back({memory, bytes});
}

void Moves::add(int peer, float* numbers, std::size_t count) {
  if (count > 0) peer_of(peer).in.push_back({reinterpret_cast<char*>(numbers), count * sizeof(float), true});
}

void Moves::run(const std::vector<Descriptor>& sockets) {
  std::vector<pollfd> ends(peers_.size());
  while (true) {
    bool busy = false;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const int events = (peers_[i].sending() ? POLLOUT : 0) | (peers_[i].receiving() ? POLLIN : 0);
      ends[i] = {events != 0 ? sockets[at_index(peers_[i].number)].number() : -1, static_cast<short>(events), 0};
      busy = busy || events != 0;
    }
    if (!busy) break;
    if (poll(ends.data(), ends.size(), 1000) <= 0) continue;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = peers_[i];
      const Descriptor& socket = sockets[at_index(peer.number)];
      if ((ends[i].revents & (POLLOUT | POLLERR | POLLHUP)) != 0 && peer.sending()) send_from(peer, socket);
      if ((ends[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0 && peer.receiving()) receive_to(peer, socket);
    }
  }
  peers_.clear();
}

void Moves::send_from(Peer& peer, const Descriptor& socket) {
  Moving& moving = peer.out[peer.next_out];
  const std::size_t sent = send_some(socket, moving.memory, moving.left, peer.number);
  moving.memory += sent;
  moving.left -= sent;
  if (moving.left == 0) ++peer.next_out;
}

void Moves::receive_to(Peer& peer, const Descriptor& socket) {
  Moving& moving = peer.in[peer.next_in];
  if (!moving.added) {
    const std::size_t count = receive_some(socket, moving.memory, moving.left, peer.number);
    moving.memory += count;
    moving.left -= count;
  } else {
    scratch_.resize(added_at_once);
    std::memcpy(scratch_.data(), peer.partial, peer.partial_bytes);
    const std::size_t wanted = std::min(scratch_.size(), moving.left) - peer.partial_bytes;
    const std::size_t there =
        peer.partial_bytes + receive_some(socket, scratch_.data() + peer.partial_bytes, wanted, peer.number);
    const std::size_t whole = there / sizeof(float);
    auto* sums = reinterpret_cast<float*>(moving.memory);
    const auto* terms = reinterpret_cast<const float*>(scratch_.data());
    for (std::size_t i = 0; i < whole; ++i) sums[i] += terms[i];
    peer.partial_bytes = there - whole * sizeof(float);
    std::memcpy(peer.partial, scratch_.data() + whole * sizeof(float), peer.partial_bytes);
    moving.memory += whole * sizeof(float);
    moving.left -= whole * sizeof(float);
  }
  if (moving.left == 0) ++peer.next_in;
}

}  // namespace foretrain
