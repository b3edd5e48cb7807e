#include "validate/learn/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

/// How stacks differ: the spread between the published tables that `foretrain validate` holds the program against,
/// whose trainers are named. layer_overhead is 19 ms of Megatron-DeepSpeed and 0 of the others; kernels stretch by up
/// to a fifth; reserved memory by up to 10 GB, and fragmentation by half of itself.
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

StackParameter constant_parameter(const Learned& learned, const Calibration& published) {
  StackParameter parameter;
  parameter.name = learned.constant;
  parameter.meaning = learned.meaning;
  const auto stated = std::ranges::find(published.constants, parameter.name, &Constant::name);
  if (stated == published.constants.end()) throw InternalError("no constant " + parameter.name);
  parameter.assumed = stated->value;
  parameter.spread = learned.spread;
  parameter.of_memory = learned.of_memory;
  parameter.not_negative = false;
  return parameter;
}

}  // namespace

double StackParameter::value(double position) const {
  const double above = not_negative ? std::max(position, 0.0) : position;
  switch (kind) {
    case Kind::layer_overhead:
    case Kind::layer_dispatch:
      return small_overhead * std::expm1(above);
    case Kind::memory_stretch:
      return std::exp(above);
    case Kind::reserved_memory:
      return above * gigabyte;
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
      return fmt::format("{:.4g} us", at * 1e6);
    case Kind::memory_stretch:
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

std::vector<StackParameter> stack_parameters(const std::vector<int>& nodes, bool memory_is_measured) {
  std::vector<StackParameter> parameters;
  parameters.push_back({Kind::layer_overhead, "workload.train.layer_overhead",
                        "lost at each block of layers of each micro-batch", 0, 0.0, overhead_spread});
  parameters.push_back({Kind::layer_dispatch, "workload.train.layer_dispatch",
                        "the host's time for a block's pass beside kernels", 0, 0.0, overhead_spread});
  parameters.push_back({Kind::memory_stretch, "workload.train.memory_stretch", "memory-bound kernels take longer", 0,
                        1.0, memory_spread});
  const Calibration published = load_default_calibration();
  for (const Learned& learned : learned_constants) {
    if (memory_is_measured || !learned.of_memory) parameters.push_back(constant_parameter(learned, published));
  }
  if (memory_is_measured) {
    parameters.push_back({Kind::reserved_memory, "workload.train.reserved_memory", "memory beside tensors", 0, 0.0,
                          reserved_spread, true});
  }
  for (const int count : nodes) {
    if (count < 2) continue;
    parameters.push_back({Kind::scaling, fmt::format("cluster.network.scaling: {}", count),
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

Scenario of_stack(Scenario scenario, const std::vector<StackParameter>& parameters, const StackSetting& setting) {
  auto& train = std::get<TrainWorkload>(scenario.workload);
  scenario.cluster.network.scaling.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const StackParameter& parameter = parameters[i];
    const double value = parameter.value(setting[i]);
    switch (parameter.kind) {
      case Kind::layer_overhead:
        train.layer_overhead = Seconds(value);
        break;
      case Kind::layer_dispatch:
        train.layer_dispatch = Seconds(value);
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
  }
  return scenario;
}

}  // namespace foretrain
