#include "validate/learn/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/number.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"

namespace foretrain {

namespace {

using Scale = StackParameter::Scale;

/// Size from which a layer's overhead grows in proportion: less is lost among kernels.
constexpr double small_overhead = 1e-4;  // s
constexpr double gigabyte = 1e9;
constexpr double least_share = 0.02;
constexpr double ten_tensors = 10.0;

/// Differences of stacks: the spread between the published tables that `foretrain validate` compares with,
/// whose trainers are named. layer_overhead is 19 ms of Megatron-DeepSpeed and 0 of the others. Kernels differ by up to
/// a fifth, reserved memory by up to 10 GB, and fragmentation by half of itself. Activations differ by a third and
/// pending buffers by 50 (nanotron's code over Megatron's).
struct Learned {
  const char* constant;
  const char* meaning;
  double spread;
  bool of_memory;
};
constexpr Learned learned_constants[] = {
    {"step.kernel_stretch", "slowdown of all kernels", 0.1, false},
    {"memory.fragmentation", "allocator fragmentation", 0.5, true},
};
constexpr double overhead_spread = 2.0, memory_spread = 0.3, reserved_spread = 5.0;
constexpr double kept_spread = 0.1, waiting_spread = 2.5;
constexpr double stated = 0.4;  ///< of these is left where the base states the setting: its own code says so

StackParameter constant_parameter(const Learned& learned, Calibration& usual) {
  const ConstantRow* row = find_constant(learned.constant);
  if (row == nullptr) throw InternalError(std::string("no constant ") + learned.constant);
  return {.name = learned.constant,
          .meaning = learned.meaning,
          .constant = row,
          .assumed = row->field(usual),
          .spread = learned.spread,
          .of_memory = learned.of_memory,
          .least = -std::numeric_limits<double>::infinity()};
}

template <auto member>
void set(TrainWorkload& train, double value) {
  train.*member = std::remove_reference_t<decltype(train.*member)>(value);
}

/// A time that the base takes too.
template <Seconds TrainWorkload::*member>
StackParameter time_parameter(const char* key, const char* meaning, const TrainWorkload& usual,
                              int pipelined_nodes = 0) {
  const double assumed = (usual.*member).value();
  return {.name = key,
          .meaning = meaning,
          .scale = Scale::time,
          .setter = set<member>,
          .assumed = assumed,
          .spread = overhead_spread,
          .least = -std::log1p(assumed / small_overhead),
          .pipelined_nodes = pipelined_nodes};
}

}  // namespace

bool StackParameter::moves(int of_nodes, bool pipelined) const {
  if (scale == Scale::share) return of_nodes == nodes;
  return pipelined_nodes == 0 || (pipelined && of_nodes >= pipelined_nodes);
}

double StackParameter::value(double position) const {
  const double above = std::max(position, least);
  switch (scale) {
    case Scale::time:
      return small_overhead * std::expm1(above - least);
    case Scale::tensors:
      return assumed + above * ten_tensors;
    case Scale::memory:
      return (above - least) * gigabyte;
    case Scale::share:
      return std::max(std::exp(-above), least_share);
    case Scale::factor:
      break;
  }
  const double factor = assumed * std::exp(above);
  return constant == nullptr ? factor : std::clamp(factor, constant->minimum, constant->maximum);
}

std::string StackParameter::text(double position) const {
  const double at = value(position);
  if (constant != nullptr) {
    return fmt::format("{:.4g}{}{}", at, constant->unit.empty() ? "" : " ", constant->unit);
  }
  switch (scale) {
    case Scale::time:
      return fmt::format("{:.4g} us", at * 1e6);
    case Scale::memory:
      return fmt::format("{:.3g} GB", at / gigabyte);
    case Scale::share:
      return fmt::format("{:.3g} %", 100.0 * at);
    default:
      return fmt::format("{:.3g}", at);
  }
}

std::vector<StackParameter> stack_parameters(const RunsAtHand& runs) {
  const TrainWorkload usual = runs.usual != nullptr ? std::get<TrainWorkload>(runs.usual->workload) : TrainWorkload{};
  Calibration constants = runs.usual != nullptr ? runs.usual->calibration : load_default_calibration();
  std::vector<StackParameter> parameters;
  parameters.push_back(
      time_parameter<&TrainWorkload::layer_overhead>(layer_overhead_key, "host time per block, not hidden", usual));
  parameters.push_back(
      time_parameter<&TrainWorkload::layer_dispatch>(layer_dispatch_key, "host time per block, hidden", usual));
  if (runs.pipelined) {
    parameters.push_back(time_parameter<&TrainWorkload::p2p_dispatch_overhead>(
        "workload.train.p2p_dispatch_overhead", "host time per further tensor rank", usual, 2));
    parameters.push_back(time_parameter<&TrainWorkload::message_overhead>("workload.train.message_overhead",
                                                                          "time per pipeline P2P message", usual, 1));
  }
  parameters.push_back({.name = "workload.train.memory_stretch",
                        .meaning = "slowdown of memory-bound kernels",
                        .setter = set<&TrainWorkload::memory_stretch>,
                        .spread = memory_spread});
  for (const Learned& learned : learned_constants) {
    if (runs.memory || !learned.of_memory) parameters.push_back(constant_parameter(learned, constants));
  }
  if (runs.memory) {
    parameters.push_back({.name = "workload.train.activation_stretch",
                          .meaning = "activation memory (factor)",
                          .setter = set<&TrainWorkload::activation_stretch>,
                          .assumed = usual.activation_stretch,
                          .spread = kept_spread * (usual.activation_stretch == 1.0 ? 1.0 : stated),
                          .of_memory = true});
    parameters.push_back({.name = "workload.train.pending_stream_buffers",
                          .meaning = "pending buffers of tensor ranks",
                          .scale = Scale::tensors,
                          .setter = set<&TrainWorkload::pending_stream_buffers>,
                          .assumed = usual.pending_stream_buffers,
                          .spread = waiting_spread * (usual.pending_stream_buffers == 0.0 ? 1.0 : stated),
                          .of_memory = true,
                          .least = -usual.pending_stream_buffers / ten_tensors});
    const double reserved = usual.reserved_memory / Bytes(gigabyte);
    parameters.push_back({.name = "workload.train.reserved_memory",
                          .meaning = "memory outside tensors",
                          .scale = Scale::memory,
                          .setter = set<&TrainWorkload::reserved_memory>,
                          .assumed = reserved,
                          .spread = reserved_spread,
                          .of_memory = true,
                          .least = -reserved});
  }
  for (const int count : runs.nodes) {
    if (count < 2) continue;
    parameters.push_back({.name = fmt::format("cluster.network.scaling.{}", count),
                          .meaning = fmt::format("network efficiency on {} nodes", count),
                          .scale = Scale::share,
                          .nodes = count,
                          .spread = scaling_spread});
  }
  return parameters;
}

Eigen::MatrixXd prior_precision(const std::vector<StackParameter>& parameters) {
  const auto count = static_cast<Eigen::Index>(parameters.size());
  Eigen::MatrixXd precision = Eigen::MatrixXd::Zero(count, count);
  std::optional<Eigen::Index> before;  // the next smaller number of nodes
  for (Eigen::Index i = 0; i < count; ++i) {
    const StackParameter& parameter = parameters[static_cast<std::size_t>(i)];
    const double weight = 1.0 / (parameter.spread * parameter.spread);
    precision(i, i) += weight;
    if (parameter.scale != Scale::share) continue;
    if (before) {
      precision(*before, *before) += weight;
      precision(i, *before) -= weight;
      precision(*before, i) -= weight;
    }
    before = i;
  }
  return precision;
}

Scenario with_setting(Scenario scenario, const StackParameter& parameter, double value) {
  if (parameter.setter != nullptr) {
    parameter.setter(std::get<TrainWorkload>(scenario.workload), value);
  } else if (parameter.constant != nullptr) {
    parameter.constant->field(scenario.calibration) = value;
  } else {
    scenario.cluster.network.scaling[parameter.nodes] = value;
  }
  return scenario;
}

Scenario of_stack(Scenario scenario, const std::vector<StackParameter>& parameters, const StackSetting& setting) {
  scenario.cluster.network.scaling.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    scenario = with_setting(std::move(scenario), parameters[i], parameters[i].value(setting[i]));
  }
  return scenario;
}

}  // namespace foretrain
