#include "validate/cuda/math/probe.hpp"

#include <cmath>
#include <cstdio>

namespace foretrain::gpu {

double read_element(Format format, const void* array, std::int64_t offset, cudaStream_t stream) {
  return read_elements(format, array, offset, 1, 1, stream).front();
}

void expect_close(const std::string& what, double got, double expected, double tolerance) {
  if (std::abs(got - expected) <= tolerance) return;  // false for NaN
  char text[160];
  std::snprintf(text, sizeof(text), ": wrong result: %.9g, where %.9g +- %.2g is right", got, expected, tolerance);
  throw GpuError(Fault::failed, what + text);
}

void SumOfProducts::add(double a, double b) {
  sum += a * b;
  magnitudes += std::abs(a * b);
  squares += a * b * a * b;
}

double SumOfProducts::tolerance(Format format) const {
  return 1e-3 * magnitudes + 8.0 * rounding_of(format) * (std::sqrt(squares) + std::abs(sum)) + 1e-6;
}

std::vector<std::int64_t> samples_below(std::int64_t limit, int count) {
  // Steps of the golden ratio cover a range evenly (Knuth, "The Art of Computer Programming", 6.4).
  std::vector<std::int64_t> samples = {0};
  if (limit > 1) samples.push_back(limit - 1);
  double place = 0.0;
  while (static_cast<int>(samples.size()) < count) {
    place = std::fmod(place + 0.6180339887498949, 1.0);
    samples.push_back(static_cast<std::int64_t>(place * static_cast<double>(limit)));
  }
  return samples;
}

}  // namespace foretrain::gpu
