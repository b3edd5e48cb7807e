// Tensors that a layer keeps for its backward pass, and operators that run again there instead.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// selective: attention is run again (arXiv 2205.05198); selective_operators: all but attention and every other matrix
/// product is (torchtitan's list of operators); selective_modules: norms, activation functions and the way up from
/// latent vectors are (Megatron-Core's recompute_modules layernorm, moe_act and mla_up_proj); full: the whole layer.
enum class Recompute { none, selective, selective_operators, selective_modules, full };

/// Of every `of` blocks in a row the first `layers` are recomputed; 0 of 0: all.
struct RecomputedLayers {
  int layers = 0, of = 0;
  bool operator==(const RecomputedLayers&) const = default;
};

/// A layer's activations between its passes, for each way to recompute. Under `full` all operators of the layer run
/// again, whatever is listed.
class Recomputation {
 public:
  struct Way {
    Bytes kept;
    std::vector<Operator> again;
    bool operator==(const Way&) const = default;
  };

  Way& operator[](Recompute recompute) { return ways_[static_cast<std::size_t>(recompute)]; }
  const Way& operator[](Recompute recompute) const { return ways_[static_cast<std::size_t>(recompute)]; }

  /// Keeps bytes that only `full` recomputes.
  void keep(Bytes bytes) {
    for (Way& way : ways_) {
      if (&way != &ways_.back()) way.kept += bytes;
    }
  }
  /// The operators of another layer that is built alike; what is kept stays.
  void run_again_as(const Recomputation& other) {
    for (std::size_t i = 0; i < ways_.size(); ++i) ways_[i].again = other.ways_[i].again;
  }
  bool operator==(const Recomputation&) const = default;

 private:
  std::array<Way, static_cast<std::size_t>(Recompute::full) + 1> ways_;
};

}  // namespace foretrain
