// What is learned of a software stack: traits and constants by which stacks differ, and the cluster's network by its
// size. In: numbers without bounds, near zero where a stack is as assumed. Out: a scenario of that stack, and the
// values that its file states.
#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "validate/fit/symmetric.hpp"

namespace foretrain {

/// One number that is learned. A setting is a vector of positions, one for each parameter.
struct StackParameter {
  enum class Kind {
    layer_overhead,      ///< workload.train.layer_overhead
    layer_dispatch,      ///< workload.train.layer_dispatch
    peer_dispatch,       ///< workload.train.peer_dispatch
    message_overhead,    ///< workload.train.message_overhead
    memory_stretch,      ///< workload.train.memory_stretch
    activation_stretch,  ///< workload.train.activation_stretch
    waiting_tensors,     ///< workload.train.waiting_tensors
    reserved_memory,     ///< workload.train.reserved_memory
    constant,            ///< of the cost models, by its name
    scaling              ///< what is left of the network's efficiency on `nodes` nodes
  };
  Kind kind = Kind::constant;
  std::string name;  ///< the key or the constant
  std::string meaning;
  int nodes = 0;           ///< scaling
  double assumed = 1.0;    ///< at position zero: the published value of a constant, the base's of a trait
  double spread = 1.0;     ///< of stacks about what is assumed: one standard deviation of the position
  bool of_memory = false;  ///< moves memory, and no time
  double least = 0.0;      ///< positions below mean the same: nothing takes less than no time

  /// Whether a run that uses `nodes` nodes, on several stages or not, changes with it.
  [[nodiscard]] bool moves(int of_nodes, bool pipelined) const;
  /// s, B, a share, a number of tensors, or the constant's unit.
  [[nodiscard]] double value(double position) const;
  /// "3.1 ms", "84 %", "7 us".
  [[nodiscard]] std::string text(double position) const;
};

using StackSetting = std::vector<double>;

/// What decides which parameters the runs can say something of.
struct RunsAtHand {
  std::vector<int> nodes;           ///< the numbers of nodes that they used
  bool memory = false;              ///< some measure it
  bool pipelined = false;           ///< some have several stages
  const Scenario* usual = nullptr;  ///< whose traits and constants are the base's; null: a well-tuned stack's
};
std::vector<StackParameter> stack_parameters(const RunsAtHand& runs);

/// The inverse of the covariance of positions before any run: independent, but for the shares that the network keeps,
/// which differ little between neighbouring numbers of nodes (a random walk over them).
Matrix prior_precision(const std::vector<StackParameter>& parameters);

/// The scenario with one trait at a value, as StackParameter::value() has it.
Scenario with_trait(Scenario scenario, const StackParameter& parameter, double value);
/// The scenario run by the stack at the setting.
Scenario of_stack(Scenario scenario, const std::vector<StackParameter>& parameters, const StackSetting& setting);

}  // namespace foretrain
