// One pipeline stage's memory: what stays for the whole step, and what passes through its layers come and go with.
#pragma once

#include <functional>
#include <vector>

#include "model/memory/memory_parts.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/parallelism/stages.hpp"
#include "model/scenario/scenario.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// States that the optimizer keeps for each parameter, muon for those of matrices: none, a momentum, or Adam's two
/// moments. With 8-bit states one byte each and an fp32 scale for each block of 2,048 (arXiv 2110.02861).
Bytes optimizer_state(const TrainWorkload& train);
/// Weight, gradient, master copy and states of one trained parameter, on a GPU that shares them with no other.
Bytes bytes_per_parameter(const Plan& plan, const TrainWorkload& train);

class StageMemory {
 public:
  /// `count` equal layers in a row, per micro-batch.
  struct Layers {
    const Layer* layer = nullptr;
    int first = 0;  ///< position in the model of the first one
    int count = 1;
    Bytes kept;                  ///< by each, until its backward pass
    Bytes kept_for_weights;      ///< by each, between the two parts of a backward pass that is done in parts
    Bytes recomputed;            ///< by one, while its backward pass runs
    Bytes forward_temporaries;   ///< alive at once in the forward pass, and not kept
    Bytes backward_temporaries;  ///< alive at once in the backward pass: gradients of activations, mostly
    Bytes gathered;              ///< its own weights and those prefetched behind them
    /// Its gradients before they are scattered and, of a block, the buffer of the scatter.
    Bytes unscattered;
  };

  struct Chunk {
    std::vector<Layers> layers;
    Bytes kept;                 ///< by all layers of one micro-batch, the loss included
    Bytes kept_for_weights;     ///< by all layers of one micro-batch
    Bytes forward_temporaries;  ///< largest
  };

  using Chunks = std::vector<std::vector<LayerRun>>;
  /// `model` must outlive this.
  StageMemory(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Chunks& chunks,
              int stage);

  /// Weights, gradients, states, buffers, context: there at every moment.
  [[nodiscard]] const MemoryParts& fixed() const { return fixed_; }
  /// While the optimizer updates.
  [[nodiscard]] MemoryParts update() const;
  [[nodiscard]] const std::vector<Chunk>& chunks() const { return chunks_; }
  /// The driver's and the communicators', of which the framework's allocator does not know.
  [[nodiscard]] Bytes outside_framework() const { return outside_framework_; }
  /// On the host's side of this GPU, activations apart.
  [[nodiscard]] Bytes host() const { return host_; }

  using Emit = std::function<void(MemoryTimeline::Phase, const Layers&, int index, const MemoryParts&)>;
  /// The moments of a pass through a chunk while `others` are kept by other passes. `every_layer`: of equal layers each
  /// one may ask for, else only the one at which most is alive.
  void forward(int chunk, Bytes others, bool every_layer, const Emit& emit) const;
  /// `parted`: it makes no gradients of weights, and keeps what these need.
  void backward(int chunk, bool parted, Bytes others, bool every_layer, const Emit& emit) const;

 private:
  void add_layers(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Chunks& chunks,
                  int position);
  void add_states(const Scenario& scenario, const TrainWorkload& train);
  /// The memory of the server on this GPU, if GPUs have servers: fp32 weights and states of its parameters, and the sum
  /// of their gradients.
  void add_server(const Plan& plan, const TrainWorkload& train);
  void add_buffers(const Scenario& scenario, const TrainWorkload& train);
  [[nodiscard]] MemoryParts moment(const Layers& layer, Bytes activations) const;
  void finish(MemoryParts& parts, Bytes stranded) const;

  MemoryParts fixed_;
  std::vector<Chunk> chunks_;
  Bytes host_, outside_framework_, update_temporaries_;
  double parameters_ = 0.0, in_experts_ = 0.0, frozen_ = 0.0;  // the stage's, on one tensor-parallel rank
  double outside_matrices_ = 0.0;                              // of the parameters, those that muon leaves to adamw
  Bytes frozen_weights_;
  double largest_ = 0.0, root_ = 0.0;  // in its largest block, and in its layers outside the blocks; frozen ones too
  double shards_ = 1.0;                // replicas over which ZeRO divides
  double fragmentation_ = 0.0;
  bool sharded_ = false, activations_on_host_ = false;
  Bytes root_gathered_;  // weights of the layers outside the blocks, all the time
  Bytes root_scatter_;   // buffer in which their gradients are scattered
  Bytes waiting_;        // freed by tensor ranks, and not back yet
};

}  // namespace foretrain
