#include "validate/cuda/replay/least_memory.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "validate/cuda/math/operator_spec.hpp"

namespace foretrain::gpu {

namespace {

/// Inputs and results of one launch; 0 for kinds that graphs do not hold, whose runner says what it needs.
double operands_of(const OperatorSpec& spec) {
  const auto number = [&](const char* key) { return spec.number_or(key, 1.0); };
  if (spec.kind == "traffic") return spec.number_or("read", 0.0) + spec.number_or("written", 0.0);
  const auto size = static_cast<double>(element_size(spec));
  if (spec.kind == "matmul") {
    const double m = number("m"), n = number("n"), k = number("k");
    return number("batch") * (m * k + k * n + m * n) * size;
  }
  if (spec.kind == "convolution") {
    const double input = number("batch") * number("channels") * number("height") * number("width");
    const double pixels = number("height") * number("width") / (number("stride") * number("stride"));
    return (input + number("batch") * number("filters") * pixels) * size;
  }
  if (spec.kind == "attention") {
    const double queries = number("batch") * number("heads") * number("sequence") * number("head_dim");
    return 4.0 * queries * size;
  }
  return 0.0;
}

}  // namespace

std::size_t least_memory(const replay::Graph& graph) {
  std::map<int, double> operands;  // of the largest operator, by stream
  double copies = 0.0, bucket = 0.0;
  for (const replay::Task& task : graph.tasks) {
    for (const Work& work : graph.blocks[static_cast<std::size_t>(task.block)].work) {
      if (const auto* kernel = std::get_if<KernelWork>(&work)) {
        double& largest = operands[task.resource];
        largest = std::max(largest, operands_of({kernel->kind, kernel->fields}));
      } else if (const auto* copy = std::get_if<CopyWork>(&work)) {
        copies = std::max(copies, 2.0 * copy->size.value());
      } else if (const auto* collective = std::get_if<CollectiveWork>(&work)) {
        bucket = std::max(bucket, collective->size.value());
      }
    }
  }
  // Streams of other GPUs have memory of their own.
  std::map<int, double> by_device;
  for (const auto& [resource, bytes] : operands) {
    by_device[graph.resources[static_cast<std::size_t>(resource)].device] += bytes;
  }
  double most = 0.0;
  for (const auto& [device, bytes] : by_device) most = std::max(most, bytes);
  return static_cast<std::size_t>(most + copies + bucket);
}

}  // namespace foretrain::gpu
