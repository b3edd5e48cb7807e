// A model as a list of layers with concrete shapes, for one micro-batch on one tensor-parallel rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "model/base/collective_operation.hpp"
#include "model/base/number.hpp"
#include "model/workload/batching.hpp"
#include "model/workload/operator.hpp"
#include "model/workload/recomputation.hpp"

namespace foretrain {

/// A collective inside a layer that all ranks of a tensor-, context- or expert-parallel group take part in, between
/// kernels that depend on it. Those of a context group's ring run beside attention.
struct LayerCollective {
  enum class Group { tensor, context, expert };
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  Group group = Group::tensor;
  Bytes size;  ///< nccl-tests' "size": the whole buffer (for all-gather and reduce-scatter: the gathered one)
  int count = 1;
  bool again = false;  ///< gathers for a product's weight gradient what the forward pass gathered, beside its data's
  int copies = 1;      ///< of each token in it, for as many experts
  double imbalance = 1.0;  ///< of tokens: what the hottest rank receives over the mean
  bool combines = false;   ///< brings back what experts made of the tokens
  bool operator==(const LayerCollective&) const = default;
};

/// Trainable matrices of one shape, as compression of their gradients sees them: a linear layer's is outputs × inputs,
/// a convolution's filters × (channels of a group · kernel height · kernel width), a table's entries × width.
struct WeightMatrix {
  std::int64_t rows = 1, columns = 1;
  std::int64_t count = 1;  ///< alike, as the experts of a layer are
  bool of_experts = false;
  [[nodiscard]] double elements() const { return number(rows) * number(columns); }
  bool operator==(const WeightMatrix&) const = default;
};

/// One layer; every quantity is per micro-batch and per tensor-parallel rank.
struct Layer {
  std::string name;
  std::vector<Operator> forward;
  std::vector<Operator> backward;
  std::vector<LayerCollective> forward_collectives;
  std::vector<LayerCollective> backward_collectives;
  double parameters = 0.0;             ///< trainable numbers held by one tensor-parallel rank
  double expert_parameters = 0.0;      ///< those in experts: in a share of them under expert parallelism
  double frozen_parameters = 0.0;      ///< held but not trained, beside `parameters`
  double frozen_share = 1.0;           ///< bytes of a frozen number over a weight's: quantised ones are shorter
  std::vector<WeightMatrix> matrices;  ///< of `parameters`, the matrices in forward order; the rest are vectors
  Recomputation recomputation;
  std::size_t unread_tail = 0;  ///< last forward operators whose results the backward pass never reads
  Bytes loss_kept;              ///< kept by the loss from its forward to its backward pass, beside what is saved
  Bytes loss_buffers;           ///< largest sum of logits, their fp32 copies and gradients at one time, with loss_kept
  Bytes output;                 ///< activation handed to the next layer (pipeline boundary)
  Bytes workspace;              ///< temporary memory beyond saved activations while the layer runs
  bool recomputable = true;     ///< full recomputation applies (transformer blocks, not embedding or head)
  bool routes_tokens = false;   ///< to experts
  bool reads_counts = false;    ///< of tokens for each expert, from the device, before their products are launched
  bool splittable = false;      ///< counts as one of `layers` when a pipeline divides the model

  /// Numbers held, by the bytes that they take.
  [[nodiscard]] double held() const { return parameters + frozen_share * frozen_parameters; }
  /// Numbers in a block's matrices, which muon orthogonalises.
  [[nodiscard]] double orthogonal() const {
    double elements = 0.0;
    for (const WeightMatrix& matrix : matrices) elements += matrix.elements() * number(matrix.count);
    return splittable ? elements : 0.0;
  }
  /// Activations kept for the backward pass, beside what the loss keeps.
  [[nodiscard]] Bytes kept(Recompute recompute = Recompute::none) const {
    return recomputation[recompute == Recompute::full && !recomputable ? Recompute::none : recompute].kept;
  }
  /// Operators of both passes, one after the other.
  [[nodiscard]] auto operators() const {
    return std::array{std::span(forward), std::span(backward)} | std::views::join;
  }
  /// Operators that the backward pass runs again before its own.
  [[nodiscard]] const std::vector<Operator>& run_again(Recompute recompute) const {
    return recompute == Recompute::full && recomputable ? forward : recomputation[recompute].again;
  }
  bool operator==(const Layer&) const = default;
};

/// `repeat` identical layers in a row.
struct LayerGroup {
  Layer layer;
  int repeat = 1;
};

struct Model {
  std::string name;
  std::vector<LayerGroup> layers;
  double parameters = 0.0;       ///< of the whole model (not per rank), trained or not, as published counts are stated
  double idle_parameters = 0.0;  ///< of these, of experts that a token is not sent to
  Flops forward_flops_per_sample;  ///< of the mathematics, whole model, one sample
  double tokens_per_sample = 0.0;  ///< sequence length; 0 where the unit is the image
  Bytes input_bytes_per_sample;    ///< copied from host to device for each sample
  /// If parts are frozen; else the backward pass is twice the forward pass.
  std::optional<Flops> backward_flops_per_sample;
  /// If samples differ in length or hold images; else all tokens are computed, and none is visual.
  struct Batch {
    double computed_tokens = 0.0;  ///< per sample, padding included
    double visual_tokens = 0.0;    ///< per sample
    double images = 0.0;           ///< per sample
  };
  std::optional<Batch> batch;
  PassVariation variation;  ///< between replicas; empty where all passes are alike

  [[nodiscard]] Flops training_flops_per_sample() const {
    return forward_flops_per_sample + backward_flops_per_sample.value_or(forward_flops_per_sample * 2.0);
  }
};

}  // namespace foretrain
