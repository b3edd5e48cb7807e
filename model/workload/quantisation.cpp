#include "model/workload/quantisation.hpp"

namespace foretrain {

namespace {

constexpr double bf16 = 2.0;  // bytes of a number before it is cast

Quantisation fp8_quantisation(Fp8Scaling scaling, Operand operand, double copies) {
  switch (scaling) {
    case Fp8Scaling::delayed:
      if (operand == Operand::weight) return {};
      return {bf16, copies, 1, operand == Operand::input};
    case Fp8Scaling::current:
      return {2.0 * bf16, copies, 3};
    case Fp8Scaling::block: {
      const double block = operand == Operand::weight ? 128.0 * 128.0 : 128.0;
      return {bf16, copies * (1.0 + 4.0 / block), 1};
    }
    case Fp8Scaling::row:
      return {copies * bf16, copies, static_cast<int>(copies)};
  }
  return {};
}

Quantisation nvfp4_quantisation(Operand operand, double copies) {
  const double written = copies * bytes_per_element(Precision::nvfp4).value();
  const double passes = 1.0 + (operand == Operand::weight ? 1.0 : copies);
  return {passes * bf16, written, static_cast<int>(passes)};
}

}  // namespace

Bytes FrozenWeights::size() const {
  constexpr double block = 64.0, scales = 256.0, fp32 = 4.0;
  if (weights == Format::int8) return Bytes(1.0);
  return Bytes(0.5 + (doubly ? 1.0 + fp32 / scales : fp32) / block);
}

Quantisation quantisation(Precision precision, Fp8Scaling scaling, Operand operand, bool both_ways) {
  const double copies = both_ways ? 2.0 : 1.0;
  if (precision == Precision::fp8) return fp8_quantisation(scaling, operand, copies);
  if (precision == Precision::mxfp8) return {bf16, copies * bytes_per_element(precision).value(), 1};
  if (precision == Precision::nvfp4) return nvfp4_quantisation(operand, copies);
  return {};
}

}  // namespace foretrain
