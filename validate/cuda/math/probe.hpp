// Reading single elements of device memory, and comparing them with a reference.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

/// Elements offset, offset + stride, … of an array on the device, as doubles. Synchronises.
std::vector<double> read_elements(Format format, const void* array, std::int64_t offset, std::int64_t stride,
                                  std::int64_t count, cudaStream_t stream);
double read_element(Format format, const void* array, std::int64_t offset, cudaStream_t stream);

/// Throws GpuError with Fault::failed, saying which element of what is wrong, unless |got - expected| <= tolerance.
void expect_close(const std::string& what, double got, double expected, double tolerance);

/// A sum and the sizes of its terms, for tolerances.
struct SumOfProducts {
  double sum = 0.0, magnitudes = 0.0, squares = 0.0;
  void add(double a, double b);
  /// Of a kernel whose inner results are rounded to the format: a part of each term, at random.
  [[nodiscard]] double tolerance(Format format) const;
};

/// `count` numbers below `limit`, always the first and the last and others in between: which elements are looked at.
std::vector<std::int64_t> samples_below(std::int64_t limit, int count);

}  // namespace foretrain::gpu
