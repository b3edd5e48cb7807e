// Parts of a GPU's memory, and a step's moments as lists of them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

enum class MemoryPart {
  weights,
  gradients,
  optimizer,      ///< states and fp32 master weights
  activations,    ///< kept by layers for the backward pass, of all micro-batches in flight
  recomputed,     ///< of one layer's recomputation
  temporaries,    ///< of the running layer, with attention's workspace and activations' gradients
  loss,           ///< logits, their fp32 copies and gradients
  gathered,       ///< weights of layers that are sharded over the replicas, or in host memory, while they are used
  communication,  ///< buckets, buffers of gathers and scatters, gradients that are not scattered yet
  context,        ///< CUDA context, kernels, libraries' workspaces, NCCL's channels: outside the allocator
  allocator       ///< reserved by the caching allocator and not in use: rounding, stranded blocks, fragmentation
};
inline constexpr std::size_t memory_part_count = 11;

std::string_view name(MemoryPart part);

struct MemoryParts {
  std::array<Bytes, memory_part_count> size{};
  [[nodiscard]] Bytes& operator[](MemoryPart part) { return size[static_cast<std::size_t>(part)]; }
  [[nodiscard]] Bytes operator[](MemoryPart part) const { return size[static_cast<std::size_t>(part)]; }
  [[nodiscard]] Bytes total() const;
};

/// The GPU with the highest peak at its fullest moment; `workspace` is all that the other four are not.
struct MemoryFootprint {
  Bytes weights, gradients, optimizer, activations, workspace;
  Bytes capacity;
  int node = 0;                         ///< that has such a GPU
  Bytes logged = {};                    ///< as the framework logs for the first rank; none: the total
  Bytes host = {}, host_capacity = {};  ///< offloaded by all GPUs of a node, and the node's memory
  double headroom = 0.0;                ///< share of the capacity that stays free (Plan::headroom)
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + workspace; }
  [[nodiscard]] bool fits_gpu() const { return total() <= capacity * (1.0 - headroom); }
  /// Only without the headroom: whether it runs, errors of predictions decide.
  [[nodiscard]] bool fits_barely() const { return !fits() && total() <= capacity && fits_host(); }
  [[nodiscard]] bool fits_host() const { return host <= host_capacity || !(host > Bytes(0.0)); }
  [[nodiscard]] bool fits() const { return fits_gpu() && fits_host(); }
};

/// "fits", "fits barely" or "DOES NOT FIT".
std::string_view verdict(const MemoryFootprint& memory);

/// The GPU with the highest peak's step in the order of its work.
struct MemoryTimeline {
  enum class Phase { forward, loss, backward, optimizer };

  /// One layer's work on one micro-batch, at its fullest.
  struct Moment {
    Phase phase = Phase::forward;
    int micro_batch = -1;  ///< none in the optimizer's phase
    int layer = -1;        ///< position in the model, counted from 0
    std::string layer_name;
    MemoryParts parts;
  };

  int stage = 0;
  std::vector<Moment> moments;
  std::size_t peak = 0;   ///< the first of the fullest moments
  int micro_batches = 0;  ///< the step has so many
  int shown = 0;          ///< those in `moments`; the ones left out repeat the ones before
  Bytes capacity;
};

}  // namespace foretrain
