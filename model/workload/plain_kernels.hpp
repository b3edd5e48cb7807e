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
  /// Numbers of an element that the passes take one at a time (Streaming::singles).
  double forward_singles = 0.0, backward_singles = 0.0;
};

/// Adds the kernels over `elements` numbers to both passes of a layer, named "`of` name". Those without traffic in a
/// pass are not launched there. Compilers write all of them with long loads.
void append_streams(Layer& layer, const std::string& of, const std::vector<StreamBytes>& streams, double elements,
                    const BuildOptions& options);

/// `element`: size of an activation. Each returns its kernels in forward order, per element of its input.

/// A bias added by a kernel of its own; its gradient is a sum over tokens.
std::vector<StreamBytes> plain_bias(Bytes element);
/// Layer norm in its input's format: under autocast, which wants fp32, the stream of residuals is fp32 itself.
std::vector<StreamBytes> plain_layer_norm(Bytes element);
/// Root-mean-square norm written as powers, mean and products in fp32.
std::vector<StreamBytes> plain_rms_norm(Bytes element);
/// Casts of autocast if `products` linear layers read fp32 numbers: each casts its input anew, and
/// sums up what they give back.
std::vector<StreamBytes> plain_input_casts(Bytes element, int products);
/// A branch's result, `element` long, added to a stream of fp32 numbers.
std::vector<StreamBytes> plain_wide_residual(Bytes element);
/// SiLU, then the product with the second half; per element of one half.
std::vector<StreamBytes> plain_gated_activation(Bytes element);
/// Kernels of standard attention over the scores beside softmax and dropout of the activations' width: scaling, the
/// mask, and where autocast or the model's code takes softmax `in_fp32`, its way there and back.
std::vector<StreamBytes> plain_scores(Bytes element, bool in_fp32);
/// The dense fp32 gradient of a table: cleared, and where the logits share the table, added to theirs. Per number.
std::vector<StreamBytes> plain_table_gradient(bool shared);

/// Between projections and scores of a block: heads split and joined by copies where attention is standard, shared keys
/// and values repeated, positions rotated. `queries` and `keys`: numbers of all queries and of all keys.
void append_plain_copies(Layer& layer, const TransformerConfig& config, const BuildOptions& options, double queries,
                         double keys);

}  // namespace foretrain
