#include "model/workload/operator.hpp"

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

}  // namespace foretrain
