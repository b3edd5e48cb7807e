#include "model/workload/operator_alone.hpp"

#include "model/base/number.hpp"
#include "model/workload/quantisation.hpp"

namespace foretrain {

namespace {

Operator cast_of(const Matmul& product, Precision precision) {
  // Libraries for inference know the scale of a whole tensor in nvfp4 beforehand: one pass, as for mxfp8.
  const Quantisation cast =
      precision == Precision::fp8
          ? quantisation(precision, Fp8Scaling::current, Operand::input, false)
          : Quantisation{bytes_per_element(Precision::bf16).value(), bytes_per_element(precision).value(), 1};
  const double elements = number(product.batch) * number(product.m) * number(product.k);
  Streaming work;
  work.kind = StreamingKind::gather;
  work.read = Bytes(elements * cast.read);
  work.written = Bytes(elements * cast.written);
  return {"cast", work, Precision::bf16, cast.kernels};
}

}  // namespace

std::vector<Operator> OperatorWorkload::operators() const {
  const auto* product = std::get_if<Matmul>(&op.work);
  if (product == nullptr || !conditions.cast || !casts_operands(op.precision)) return {op};
  return {cast_of(*product, op.precision), op};
}

}  // namespace foretrain
