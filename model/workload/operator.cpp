#include "model/workload/operator.hpp"

#include "model/workload/operator_alone.hpp"
#include "model/workload/quantisation.hpp"

namespace foretrain {

Matmul linear_forward(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return {.batch = batch, .m = m, .n = n, .k = k, .transpose_b = true};
}

Matmul linear_data_gradient(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return {.batch = batch, .m = m, .n = k, .k = n};
}

Matmul linear_weight_gradient(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return {.batch = batch, .m = n, .n = k, .k = m, .transpose_a = true};
}

Operator streaming_operator(std::string name, StreamingKind kind, double elements, double reads, double writes,
                            Precision precision, int kernels) {
  const Bytes all = bytes_per_element(precision) * elements;
  const bool fusible = kind == StreamingKind::elementwise;
  const Streaming work{kind, all * reads, all * writes, Flops(elements * reads), fusible};
  return {std::move(name), work, precision, kernels};
}

Flops flops(const Operator& op) {
  return std::visit([](const auto& work) { return work.operations(); }, op.work);
}

Bytes minimum_traffic(const Operator& op) {
  const Bytes element = bytes_per_element(op.precision);
  if (const auto* product = std::get_if<Matmul>(&op.work)) {
    return product->traffic(element, bytes_per_element(result_precision(op.precision)));
  }
  return std::visit([element](const auto& work) { return work.traffic(element); }, op.work);
}

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
