#include "model/parameter_server/store.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include "model/base/hash.hpp"

namespace foretrain {

namespace {

/// FNV-1a of "layer/piece" and a final mixing (the finaliser of MurmurHash3), since short names differ in few bits.
std::uint64_t hash_of(const KeyPiece& key) {
  std::uint64_t hash = fnv_1a(std::to_string(key.layer) + "/" + std::to_string(key.piece));
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  return hash ^ (hash >> 33U);
}

}  // namespace

std::vector<KeyPiece> cut_keys(const std::vector<double>& parameters_of_layer, Bytes per_parameter, Bytes split) {
  constexpr double most_pieces = 1e5;  // a split of one byte must not need more memory than there is
  std::vector<KeyPiece> pieces;
  for (std::size_t layer = 0; layer < parameters_of_layer.size(); ++layer) {
    const double parameters = parameters_of_layer[layer];
    if (!(parameters > 0.0)) continue;
    const double wanted = std::ceil(per_parameter * parameters / split - 1e-9);
    const auto count = static_cast<int>(std::clamp(wanted, 1.0, most_pieces));
    for (int piece = 0; piece < count; ++piece) {
      pieces.push_back({static_cast<int>(layer), piece, parameters / count});
    }
  }
  return pieces;
}

std::vector<int> assign_keys(const std::vector<KeyPiece>& pieces, int servers, Sync::Assignment assignment) {
  std::vector<int> server_of_piece(pieces.size());
  if (assignment == Sync::Assignment::hashed) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      server_of_piece[i] = static_cast<int>(hash_of(pieces[i]) % static_cast<std::uint64_t>(servers));
    }
    return server_of_piece;
  }
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return pieces[i].parameters; });
  using Load = std::pair<double, int>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (int server = 0; server < servers; ++server) least.emplace(0.0, server);
  for (const std::size_t i : order) {
    const auto [load, server] = least.top();
    least.pop();
    server_of_piece[i] = server;
    least.emplace(load + pieces[i].parameters, server);
  }
  return server_of_piece;
}

double load_imbalance(const std::vector<KeyPiece>& pieces, const std::vector<int>& server_of_piece, int servers) {
  std::vector<double> load(static_cast<std::size_t>(servers), 0.0);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    load[static_cast<std::size_t>(server_of_piece[i])] += pieces[i].parameters;
  }
  const double total = std::accumulate(load.begin(), load.end(), 0.0);
  return total > 0.0 ? *std::ranges::max_element(load) * servers / total : 1.0;
}

}  // namespace foretrain
