// Operators of the end of a step, and reads that probe a GPU's memory hierarchy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/words.hpp"
#include "model/scenario/workload/workload_reader.hpp"
#include "model/workload/update_passes.hpp"

namespace foretrain {

namespace {

constexpr double master_size = 4.0;
constexpr IntegerRange parameter_counts{1, 1'000'000'000'000};

}  // namespace

/// { parameters, algorithm (= adamw), tensors (= 1), fused (= true), precision (= fp32) }: one update. Weights, states
/// and gradients are fp32; a copy of the weights in a shorter precision is written too. Fused is one kernel over all
/// tensors, otherwise each tensor has kernels of its own.
Operator read_optimizer(const Field& field) {
  const MappingReader keys = field.mapping(keys::optimizer);
  const auto parameters = static_cast<double>(keys["parameters"].integer(parameter_counts));
  const UpdatePasses passes = update_passes(keys.choice_or("algorithm", Optimizer::adamw));
  const int tensors = keys.int_or("tensors", 1, {1, 10'000'000});
  const bool fused = keys.flag_or("fused", true);
  const Precision precision = read_precision(keys);
  const double copy = precision == Precision::fp32 ? 0.0 : bytes_per_element(storage_precision(precision)).value();
  const double cast = copy > 0.0 && !fused ? master_size : 0.0;  // the copy reads the weights again
  const double read = master_size * (fused ? passes.fused_read : passes.separate_read) + cast;
  const double written = master_size * (fused ? passes.fused_written : passes.separate_written) + copy;
  const int kernels = fused ? 1 : tensors * (passes.separate_kernels + (copy > 0.0 ? 1 : 0));
  return {fmt::format("optimizer of {:g} parameters", parameters),
          Streaming{StreamingKind::optimizer, Bytes(read * parameters), Bytes(written * parameters),
                    Flops(passes.flops * parameters), false},
          precision, kernels};
}

/// { parameters, tensors (= 1), fused (= true), precision (= fp32) }: the norm of all gradients, then their scaling.
/// Fused takes four kernels: norms of chunks, their sum, the factor, the scaling; otherwise two per tensor and two for
/// the sum.
Operator read_gradient_clipping(const Field& field) {
  const MappingReader keys = field.mapping(keys::gradient_clipping);
  const auto parameters = static_cast<double>(keys["parameters"].integer(parameter_counts));
  const int tensors = keys.int_or("tensors", 1, {1, 10'000'000});
  const Precision precision = read_precision(keys);
  const double gradients = parameters * bytes_per_element(storage_precision(precision)).value();
  return {fmt::format("gradient clipping of {:g} parameters", parameters),
          Streaming{StreamingKind::optimizer, Bytes(2.0 * gradients), Bytes(gradients), Flops(3.0 * parameters), false},
          precision, keys.flag_or("fused", true) ? 4 : 2 * tensors + 2};
}

/// { pattern (= sequential), working_set, element (= 4 B), stride (strided only), reads }: sequential | strided |
/// random | dependent reads on the GPU; `reads` is once through the working set where it is not stated.
Operator read_memory_access(const Field& field) {
  const MappingReader keys = field.mapping(keys::memory_access);
  MemoryAccess work;
  keys.fill(work);
  keys.fail_if(work.element > work.working_set, "working_set", "smaller than one element",
               "at least the element's size");
  const bool strided = work.pattern == AccessPattern::strided;
  if (strided) {
    work.stride = keys["stride"].quantity<Bytes>();
    if (work.stride < work.element) keys.fail("stride", "shorter than one element", "at least the element's size");
  } else if (keys.has("stride")) {
    keys.fail("stride", "this pattern has no stride", "pattern: strided");
  }
  const double once = std::max(1.0, std::floor(work.working_set / (strided ? work.stride : work.element)));
  work.reads = once;
  if (const auto reads = keys.find("reads"))
    work.reads = static_cast<double>(reads->integer({1, 1'000'000'000'000'000}));
  return {fmt::format("{:g} reads", work.reads), work, Precision::fp32, 1};
}

}  // namespace foretrain
