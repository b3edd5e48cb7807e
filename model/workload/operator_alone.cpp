#include "model/workload/operator_alone.hpp"

#include "model/base/number.hpp"
#include "model/workload/quantisation.hpp"

namespace foretrain {

namespace {

// fp8 by the tensor's own largest value: a pass that looks for it, one that makes a scale of it, one that casts.
// Formats with scales for blocks: one pass.
constexpr int fp8_kernels = 3, block_kernels = 1;

Operator cast_of(const Matmul& product, Precision precision) {
  const bool by_tensor = precision == Precision::fp8;
  const Quantisation cast = by_tensor ? quantisation(precision, Fp8Scaling::current, Operand::input, false)
                                      : Quantisation{bytes_per_element(Precision::bf16).value(),
                                                     bytes_per_element(precision).value(), block_kernels};
  const double elements = number(product.batch) * number(product.m) * number(product.k);
  Streaming work;
  work.kind = StreamingKind::gather;
  work.read = Bytes(elements * cast.read);
  work.written = Bytes(elements * cast.written);
  return {"cast", work, Precision::bf16, by_tensor ? fp8_kernels : block_kernels};
}

}  // namespace

std::vector<Operator> OperatorWorkload::operators() const {
  const auto* product = std::get_if<Matmul>(&op.work);
  if (product == nullptr || !conditions.cast || !casts_operands(op.precision)) return {op};
  return {cast_of(*product, op.precision), op};
}

}  // namespace foretrain
