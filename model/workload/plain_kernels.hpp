// Memory-bound kernels of trainers written in plain framework code: every operation is a kernel of its own, and what
// mixed precision keeps in fp32 is cast there and back. A compiler merges most of them (the kernels are marked
// fusible).
#pragma once

#include <string>
#include <vector>

#include "model/workload/build.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// A kernel and its backward pass, in bytes of device memory per element.
struct StreamBytes {
  const char* name;
  StreamingKind kind;
  double forward_read, forward_written, backward_read, backward_written;
  bool fusible = true;
  int backward_kernels = 1;
  OperatorRole role = OperatorRole::any;
};

/// Adds the kernels over `elements` numbers to both passes of a layer, named "`of` name". Those without traffic in a
/// pass are not launched there.
void append_streams(Layer& layer, const std::string& of, const std::vector<StreamBytes>& streams, double elements,
                    Precision precision);

/// `element`: size of an activation. Each returns its kernels in forward order, per element of its input.

/// A bias added by a kernel of its own; its gradient is a sum over tokens.
std::vector<StreamBytes> plain_bias(Bytes element);
/// Layer norm in fp32, as autocast demands.
std::vector<StreamBytes> plain_layer_norm(Bytes element);
/// Root-mean-square norm written as powers, mean and products in fp32.
std::vector<StreamBytes> plain_rms_norm(Bytes element);
/// SiLU, then the product with the second half; per element of one half.
std::vector<StreamBytes> plain_gated_activation(Bytes element);
/// What standard attention launches over the scores beside softmax and dropout of the activations' width: scaling, the
/// mask, and under autocast the softmax's way to fp32 and back.
std::vector<StreamBytes> plain_scores(Bytes element);
/// The dense fp32 gradient of a table: cleared, and where the logits share the table, added to theirs. Per number.
std::vector<StreamBytes> plain_table_gradient(bool shared);

/// Between projections and scores of a block: heads split and joined by copies where attention is standard, shared keys
/// and values repeated, positions rotated. `queries` and `keys`: numbers of all queries and of all keys.
void append_plain_copies(Layer& layer, const TransformerConfig& config, const BuildOptions& options, double queries,
                         double keys);

}  // namespace foretrain
