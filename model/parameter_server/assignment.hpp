// Which server of a key–value store holds which key. A key is a layer's parameters; large ones are cut into pieces.
#pragma once

#include <vector>

#include "model/parallelism/plan.hpp"

namespace foretrain {

/// A key, or one of the equal pieces into which a large key is cut.
struct KeyPiece {
  int layer = 0;  ///< in model order
  int piece = 0;
  double parameters = 0.0;
};

/// Cuts the keys of layers with these numbers of parameters into pieces of `split` at most (as BytePS cuts tensors,
/// BYTEPS_PARTITION_BYTES = 4,096,000, and MXNet those above MXNET_KVSTORE_BIGARRAY_BOUND = 10⁶ elements). Layers
/// without parameters have no key.
std::vector<KeyPiece> cut_keys(const std::vector<double>& parameters_of_layer, Bytes per_parameter, Bytes split);

/// The server of every piece. balanced: the largest piece first, each to the server that holds least (ties: the first);
/// at most 4/3 of the best possible maximum (Graham, "Bounds on multiprocessing timing anomalies", 1969). hashed: by a
/// hash of the piece's name, which needs no table that all workers agree on, and leaves the loads to chance.
std::vector<int> assign_keys(const std::vector<KeyPiece>& pieces, int servers, Sync::Assignment assignment);

/// Parameters of the fullest server ÷ mean over the servers: the factor by which the busiest one is slower than an even
/// split. 1 for no parameters at all.
double load_imbalance(const std::vector<KeyPiece>& pieces, const std::vector<int>& server_of_piece, int servers);

}  // namespace foretrain
