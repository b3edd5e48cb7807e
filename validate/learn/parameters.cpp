#include "validate/learn/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/number.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"

namespace foretrain {

namespace {

using Kind = StackParameter::Kind;

/// Where a layer's overhead begins to grow in proportion: less is lost among kernels.
constexpr double small_overhead = 1e-4;  // s
constexpr double gigabyte = 1e9;
constexpr double least_share = 0.02;
constexpr double ten_tensors = 10.0;

/// How stacks differ: the spread between the published tables that `foretrain validate` holds the program against,
/// whose trainers are named. layer_overhead is 19 ms of Megatron-DeepSpeed and 0 of the others; kernels stretch by up
/// to a fifth; reserved memory by up to 10 GB, and fragmentation by half of itself; kept activations by a third and
/// tensors in wait by 50 (nanotron's code over Megatron's).
struct Learned {
  const char* constant;
  const char* meaning;
  double spread;
  bool of_memory;
};
constexpr Learned learned_constants[] = {
    {"step.kernel_stretch", "kernels of a step over kernels alone", 0.1, false},
    {"memory.fragmentation", "memory that the allocator holds beyond tensors", 0.5, true},
};
constexpr double overhead_spread = 2.0, memory_spread = 0.3, reserved_spread = 5.0, scaling_spread = 0.35;
constexpr double kept_spread = 0.1, waiting_spread = 2.5;
constexpr double stated = 0.4;  ///< of these is left where the base states the trait: its own code says so

StackParameter constant_parameter(const Learned& learned, Calibration& usual) {
  StackParameter parameter;
  parameter.name = learned.constant;
  parameter.meaning = learned.meaning;
  const ConstantRow* row = find_constant(parameter.name);
  if (row == nullptr) throw InternalError("no constant " + parameter.name);
  parameter.assumed = row->field(usual);
  parameter.spread = learned.spread;
  parameter.of_memory = learned.of_memory;
  parameter.least = -std::numeric_limits<double>::infinity();
  return parameter;
}

/// A time that the base takes too, `usual`.
StackParameter time_parameter(Kind kind, const char* key, const char* meaning, Seconds usual) {
  StackParameter parameter{kind, key, meaning, 0, usual.value(), overhead_spread};
  parameter.least = -std::log1p(parameter.assumed / small_overhead);
  return parameter;
}

}  // namespace

bool StackParameter::moves(int of_nodes, bool pipelined) const {
  switch (kind) {
    case Kind::scaling:
      return of_nodes == nodes;
    case Kind::peer_dispatch:
      return pipelined && of_nodes > 1;
    case Kind::message_overhead:
      return pipelined;
    default:
      return true;
  }
}

double StackParameter::value(double position) const {
  const double above = std::max(position, least);
  switch (kind) {
    case Kind::layer_overhead:
    case Kind::layer_dispatch:
    case Kind::peer_dispatch:
    case Kind::message_overhead:
      return small_overhead * std::expm1(above - least);
    case Kind::memory_stretch:
    case Kind::activation_stretch:
      return assumed * std::exp(above);
    case Kind::waiting_tensors:
      return assumed + above * ten_tensors;
    case Kind::reserved_memory:
      return (above - least) * gigabyte;
    case Kind::scaling:
      return std::max(std::exp(-above), least_share);
    case Kind::constant:
      break;
  }
  const ConstantRow& row = *find_constant(name);
  return std::clamp(assumed * std::exp(above), row.minimum, row.maximum);
}

std::string StackParameter::text(double position) const {
  const double at = value(position);
  switch (kind) {
    case Kind::layer_overhead:
    case Kind::layer_dispatch:
    case Kind::peer_dispatch:
    case Kind::message_overhead:
      return fmt::format("{:.4g} us", at * 1e6);
    case Kind::memory_stretch:
    case Kind::activation_stretch:
    case Kind::waiting_tensors:
      return fmt::format("{:.3g}", at);
    case Kind::reserved_memory:
      return fmt::format("{:.3g} GB", at / gigabyte);
    case Kind::scaling:
      return fmt::format("{:.3g} %", 100.0 * at);
    case Kind::constant:
      break;
  }
  const std::string& unit = find_constant(name)->unit;
  return fmt::format("{:.4g}{}{}", at, unit.empty() ? "" : " ", unit);
}

std::vector<StackParameter> stack_parameters(const RunsAtHand& runs) {
  const TrainWorkload usual = runs.usual != nullptr ? std::get<TrainWorkload>(runs.usual->workload) : TrainWorkload{};
  Calibration constants = runs.usual != nullptr ? runs.usual->calibration : load_default_calibration();
  std::vector<StackParameter> parameters;
  parameters.push_back(time_parameter(Kind::layer_overhead, "workload.train.layer_overhead",
                                      "lost at each block of layers of each micro-batch", usual.layer_overhead));
  parameters.push_back(time_parameter(Kind::layer_dispatch, "workload.train.layer_dispatch",
                                      "the host's time for a block's pass beside kernels", usual.layer_dispatch));
  if (runs.pipelined) {
    parameters.push_back(time_parameter(Kind::peer_dispatch, "workload.train.peer_dispatch",
                                        "for each other tensor rank, stages across nodes", usual.peer_dispatch));
    parameters.push_back(time_parameter(Kind::message_overhead, "workload.train.message_overhead",
                                        "a message between stages beside its transfer", usual.message_overhead));
  }
  parameters.push_back({Kind::memory_stretch, "workload.train.memory_stretch", "memory-bound kernels take longer", 0,
                        1.0, memory_spread});
  for (const Learned& learned : learned_constants) {
    if (runs.memory || !learned.of_memory) parameters.push_back(constant_parameter(learned, constants));
  }
  if (runs.memory) {
    parameters.push_back({Kind::activation_stretch, "workload.train.activation_stretch",
                          "what blocks keep over what they read again", 0, usual.activation_stretch,
                          kept_spread * (usual.activation_stretch == 1.0 ? 1.0 : stated), true});
    parameters.push_back({Kind::waiting_tensors, "workload.train.waiting_tensors",
                          "hidden states that wait for collectives", 0, usual.waiting_tensors,
                          waiting_spread * (usual.waiting_tensors == 0.0 ? 1.0 : stated), true,
                          -usual.waiting_tensors / ten_tensors});
    const double reserved = usual.reserved_memory / Bytes(gigabyte);
    parameters.push_back({Kind::reserved_memory, "workload.train.reserved_memory", "memory beside tensors", 0, reserved,
                          reserved_spread, true, -reserved});
  }
  for (const int count : runs.nodes) {
    if (count < 2) continue;
    parameters.push_back({Kind::scaling, fmt::format("cluster.network.scaling.{}", count),
                          fmt::format("left of the network's rate on {} machines", count), count, 1.0, scaling_spread});
  }
  return parameters;
}

Matrix prior_precision(const std::vector<StackParameter>& parameters) {
  Matrix precision = square(parameters.size());
  std::optional<std::size_t> before;  // the next smaller number of nodes
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double weight = 1.0 / (parameters[i].spread * parameters[i].spread);
    precision[i][i] += weight;
    if (parameters[i].kind != Kind::scaling) continue;
    if (before) {
      precision[*before][*before] += weight;
      precision[i][*before] -= weight;
      precision[*before][i] -= weight;
    }
    before = i;
  }
  return precision;
}

Scenario with_trait(Scenario scenario, const StackParameter& parameter, double value) {
  auto& train = std::get<TrainWorkload>(scenario.workload);
  switch (parameter.kind) {
    case Kind::layer_overhead:
      train.layer_overhead = Seconds(value);
      break;
    case Kind::layer_dispatch:
      train.layer_dispatch = Seconds(value);
      break;
    case Kind::activation_stretch:
      train.activation_stretch = value;
      break;
    case Kind::waiting_tensors:
      train.waiting_tensors = value;
      break;
    case Kind::peer_dispatch:
      train.peer_dispatch = Seconds(value);
      break;
    case Kind::message_overhead:
      train.message_overhead = Seconds(value);
      break;
    case Kind::memory_stretch:
      train.memory_stretch = value;
      break;
    case Kind::reserved_memory:
      train.reserved_memory = Bytes(value);
      break;
    case Kind::scaling:
      scenario.cluster.network.scaling[parameter.nodes] = value;
      break;
    case Kind::constant:
      find_constant(parameter.name)->field(scenario.calibration) = value;
      break;
  }
  return scenario;
}

Scenario of_stack(Scenario scenario, const std::vector<StackParameter>& parameters, const StackSetting& setting) {
  scenario.cluster.network.scaling.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    scenario = with_trait(std::move(scenario), parameters[i], parameters[i].value(setting[i]));
  }
  return scenario;
}

}  // namespace foretrain
