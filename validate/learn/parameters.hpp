// Learned parameters of a software stack: settings and constants by which stacks differ, and the cluster's network by
// its size. In: numbers without bounds, near zero where a stack is as assumed. Out: a scenario of that stack, and the
// values that its file states.
#pragma once

#include <Eigen/Core>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace foretrain {

inline constexpr const char* layer_overhead_key = "workload.train.layer_overhead";
inline constexpr const char* layer_dispatch_key = "workload.train.layer_dispatch";

/// Loss of network efficiency on twice as many nodes: the standard deviation of its logarithm between clusters.
inline constexpr double scaling_spread = 0.35;

/// One number that is learned. A setting is a vector of positions, one for each parameter.
struct StackParameter {
  /// Scale of its values; share: remaining network efficiency.
  enum class Scale { time, factor, tensors, memory, share };
  std::string name = {};  ///< the key or the constant
  std::string meaning = {};
  Scale scale = Scale::factor;
  /// Of these three one says where a scenario has it: a setting, a constant of the cost models, the network on so many
  /// nodes.
  void (*setter)(TrainWorkload& train, double value) = nullptr;
  const ConstantRow* constant = nullptr;
  int nodes = 0;
  double assumed = 1.0;     ///< at position zero: the published value of a constant, the base's of a setting
  double spread = 1.0;      ///< of stacks about what is assumed: one standard deviation of the position
  bool of_memory = false;   ///< moves memory, and no time
  double least = 0.0;       ///< positions below mean the same: nothing takes less than no time
  int pipelined_nodes = 0;  ///< moves nothing but pipelines on so many nodes at least; 0: any run

  /// Whether a run that uses `nodes` nodes, on several stages or not, changes with it.
  [[nodiscard]] bool moves(int of_nodes, bool pipelined) const;
  /// s, B, a share, a number of tensors, or the constant's unit.
  [[nodiscard]] double value(double position) const;
  /// "3.1 ms", "84 %", "7 us".
  [[nodiscard]] std::string text(double position) const;
};

using StackSetting = std::vector<double>;

/// Properties of the runs that decide which parameters they determine.
struct RunsAtHand {
  std::vector<int> nodes;           ///< the numbers of nodes that they used
  bool memory = false;              ///< some measure it
  bool pipelined = false;           ///< some have several stages
  const Scenario* usual = nullptr;  ///< with the base's settings and constants; null: a tuned stack's
};
std::vector<StackParameter> stack_parameters(const RunsAtHand& runs);

/// The inverse of the covariance of positions before any run: independent, but for the shares that the network keeps,
/// which differ little between neighbouring numbers of nodes (a random walk over them).
Eigen::MatrixXd prior_precision(const std::vector<StackParameter>& parameters);

/// The scenario with one setting at a value, as StackParameter::value() has it.
Scenario with_setting(Scenario scenario, const StackParameter& parameter, double value);
Scenario of_stack(Scenario scenario, const std::vector<StackParameter>& parameters, const StackSetting& setting);

}  // namespace foretrain
