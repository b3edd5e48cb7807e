#include "model/hardware/gpu.hpp"

namespace foretrain {
namespace {

// int8 has no wider integer format, and bf16's range needs fp32.
Precision wider(Precision p) {
  using enum Precision;
  constexpr std::array<Precision, precision_count> next = {fp32, fp32, fp32, fp32, fp32, fp16, fp32, int8, fp8, mxfp8};
  return next[static_cast<std::size_t>(p)];
}

}  // namespace

Precision Gpu::arithmetic_precision(Precision p) const {
  const auto has_vector_units = [this](Precision q) { return vector_rate[static_cast<std::size_t>(q)].value() > 0.0; };
  while (p != Precision::fp32 && !has_tensor_cores(p) && !has_vector_units(p)) p = wider(p);
  return p;
}

FlopsPerSecond Gpu::matrix_rate(Precision p) const {
  const auto unit = static_cast<std::size_t>(arithmetic_precision(p));
  const bool tensor = p != Precision::fp32 && tensor_rate[unit].value() > 0.0;
  note_read(rate_number(unit, tensor));
  return tensor ? tensor_rate[unit] : vector_rate[unit];
}

}  // namespace foretrain
