#include "model/hardware/gpu.hpp"

namespace foretrain {

FlopsPerSecond Gpu::matrix_rate(Precision p) const {
  const auto vector = [this](Precision q) { return vector_rate[static_cast<std::size_t>(q)]; };
  if (p == Precision::fp32) return vector(Precision::fp32);
  if (has_tensor_cores(p)) return tensor_rate[static_cast<std::size_t>(p)];
  if (vector(p).value() > 0.0) return vector(p);
  return vector(Precision::fp32);
}

}  // namespace foretrain
