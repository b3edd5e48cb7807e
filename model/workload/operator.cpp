#include "model/workload/operator.hpp"

#include "model/base/number.hpp"

namespace foretrain {
namespace {

// Two operations (multiply, add) for each element of m × n × k.
Flops work_of(const Matmul& w) { return Flops(2.0 * number(w.batch) * number(w.m) * number(w.n) * number(w.k)); }

// Every pass multiplies and adds once for each output element, input channel of its group and filter tap.
Flops work_of(const Convolution& w) {
  return Flops(2.0 * number(w.n) * number(w.k) * number(w.p) * number(w.q) * number(w.c) / number(w.groups) *
               number(w.r) * number(w.s));
}

// Two products per score, each 2·head_dim; the backward pass has four (dV, dP, dQ, dK).
Flops work_of(const Attention& w) { return Flops((w.backward ? 8.0 : 4.0) * scores(w) * number(w.head_dim)); }

Flops work_of(const Streaming& w) { return w.flops; }

Flops work_of(const MemoryAccess&) { return Flops(0.0); }

Bytes traffic_of(const Matmul& w, Bytes element) {
  const Bytes result =
      w.accumulate_fp32 ? 2.0 * bytes_per_element(Precision::fp32) : (w.accumulate ? 2.0 : 1.0) * element;
  return number(w.batch) *
         ((number(w.m) * number(w.k) + number(w.k) * number(w.n)) * element + number(w.m) * number(w.n) * result);
}

// Every pass touches input, filter and output (or their gradients) once: it reads two and writes the third.
Bytes traffic_of(const Convolution& w, Bytes element) {
  const double input = number(w.n) * number(w.c) * number(w.h) * number(w.w);
  const double filter = number(w.k) * number(w.c) / number(w.groups) * number(w.r) * number(w.s);
  const double output = number(w.n) * number(w.k) * number(w.p) * number(w.q);
  return (input + filter + output) * element;
}

// Forward reads Q, K, V and writes O; backward reads these and dO and writes dQ, dK, dV.
Bytes traffic_of(const Attention& w, Bytes element) {
  const double queries = number(w.batch) * number(w.heads) * number(w.query_length) * number(w.head_dim);
  const double keys = number(w.batch) * number(w.kv_heads) * number(w.key_length) * number(w.head_dim);
  return (w.backward ? 4.0 * queries + 4.0 * keys : 2.0 * queries + 2.0 * keys) * element;
}

Bytes traffic_of(const Streaming& w, Bytes) { return w.read + w.written; }

// What the caches kept is not read again.
Bytes traffic_of(const MemoryAccess& w, Bytes) { return std::min(w.reads * w.element, w.working_set); }

}  // namespace

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
  return std::visit([](const auto& work) { return work_of(work); }, op.work);
}

Bytes minimum_traffic(const Operator& op) {
  return std::visit([&op](const auto& work) { return traffic_of(work, bytes_per_element(op.precision)); }, op.work);
}

}  // namespace foretrain
