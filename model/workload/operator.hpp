// Operators: what one kernel (or a short fixed sequence of kernels) computes, by shape. No device, no time.
//
// A kind of operator is a struct of this file and stands in FORETRAIN_OPERATORS; how long it takes is in
// cost/kernels_NAME.cpp.
//   word        its family in measurements and calibrations
//   operations  see flops(Operator)
//   traffic     see minimum_traffic(Operator); an element takes `element`
//   result      what it writes, as the operator after it reads it
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "model/base/number.hpp"
#include "model/base/quantity.hpp"
#include "model/hardware/precision.hpp"
#include "model/workload/attention.hpp"
#include "model/workload/trainer_code.hpp"

namespace foretrain {

/// C[m,n] (+)= A[m,k] · B[k,n], `batch` independent products. Matrices lie row by row: k is contiguous in A and n in B
/// unless the operand is transposed (a linear layer, x · Wᵀ, has B transposed).
struct Matmul {
  static constexpr std::string_view word = "matmul";
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool accumulate_fp32 = false;  ///< adds into an fp32 result (gradient accumulation): reads and writes 4-byte C
  bool accumulate = false;       ///< adds into a result of its own precision: reads C too
  bool transpose_a = false;      ///< A is stored as [k,m]
  bool transpose_b = false;      ///< B is stored as [n,k]
  bool padded = false;           ///< rows are padded to 16 bytes whatever their length
  bool grouped = false;          ///< experts' products: m differs from one to the next, and is m on average

  /// Two (multiply, add) for each element of m × n × k.
  [[nodiscard]] Flops operations() const { return Flops(2.0 * number(batch) * number(m) * number(n) * number(k)); }
  [[nodiscard]] Bytes traffic(Bytes element) const { return traffic(element, element); }
  /// Elements of C take `of_result`.
  [[nodiscard]] Bytes traffic(Bytes element, Bytes of_result) const {
    const Bytes sum = accumulate_fp32 ? 2.0 * bytes_per_element(Precision::fp32) : (accumulate ? 2.0 : 1.0) * of_result;
    return number(batch) * ((number(m) * number(k) + number(k) * number(n)) * element + number(m) * number(n) * sum);
  }
  [[nodiscard]] Bytes result(Bytes element) const { return number(batch) * number(m) * number(n) * element; }
  bool operator==(const Matmul&) const = default;
};

/// The products of a linear layer y[m,n] = x[m,k] · W[n,k]ᵀ, as frameworks store its weights: y, dx = dy · W and
/// dW = dyᵀ · x.
Matmul linear_forward(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1);
Matmul linear_data_gradient(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1);
Matmul linear_weight_gradient(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1);

enum class ConvolutionPass { forward, data_gradient, weight_gradient };

/// 2-D convolution, shapes of the forward pass: input [n, c, h, w], filter [k, c/groups, r, s], output [n, k, p, q].
struct Convolution {
  static constexpr std::string_view word = "convolution";
  std::int64_t n = 1, c = 1, h = 1, w = 1, k = 1, r = 1, s = 1, p = 1, q = 1;
  std::int64_t stride = 1, groups = 1;
  ConvolutionPass pass = ConvolutionPass::forward;
  MemoryFormat format = MemoryFormat::nhwc;  ///< of images; kernels for tensor cores turn those in NCHW round

  [[nodiscard]] double inputs() const { return number(n) * number(c) * number(h) * number(w); }
  [[nodiscard]] double weights() const { return number(k) * number(c) / number(groups) * number(r) * number(s); }
  [[nodiscard]] double outputs() const { return number(n) * number(k) * number(p) * number(q); }
  /// Every pass multiplies and adds once for each output element, input channel of its group and filter tap.
  [[nodiscard]] Flops operations() const {
    return Flops(2.0 * outputs() * number(c) / number(groups) * number(r) * number(s));
  }
  /// Every pass touches input, filter and output (or their gradients) once: it reads two and writes the third.
  [[nodiscard]] Bytes traffic(Bytes element) const { return (inputs() + weights() + outputs()) * element; }
  [[nodiscard]] Bytes result(Bytes element) const {
    if (pass == ConvolutionPass::forward) return outputs() * element;
    return (pass == ConvolutionPass::data_gradient ? inputs() : weights()) * element;
  }
  bool operator==(const Convolution&) const = default;
};

enum class StreamingKind { elementwise, reduction, gather, optimizer };

/// Work bound by memory traffic: elementwise chains, norms, softmax, pooling, embedding look-ups, optimizer updates.
struct Streaming {
  static constexpr std::string_view word = "streaming";
  StreamingKind kind = StreamingKind::elementwise;
  Bytes read;
  Bytes written;
  Flops flops;
  bool fusible = false;  ///< a compiler may merge it into its producer: the intermediate is then never written
  double singles = 0.0;  ///< numbers that a framework's kernel takes singly, each a short load or store of its own
  /// Kernels that pass over each row more than once, a row for each block of threads.
  struct Rows {
    double count = 0.0, threads = 1.0;  ///< rows, threads of a block
    Bytes row;                          ///< of one row, read and written
    Bytes again;                        ///< read again, of all rows; from the L2 if rows under way are still there
    double instructions = 0.0;          ///< that warps issue for a row
    bool operator==(const Rows&) const = default;
  } rows = {};
  bool repeated = false;  ///< runs over and over on the same tensors: between two reads lies all that it moves

  [[nodiscard]] Flops operations() const { return flops; }
  [[nodiscard]] Bytes traffic(Bytes /*element*/) const { return read + written; }
  [[nodiscard]] Bytes result(Bytes /*element*/) const { return written; }
  bool operator==(const Streaming&) const = default;
};

/// Addresses of neighbouring threads' reads: one behind the other, a stride apart, anywhere, or each read's address
/// coming out of the read before it (one thread follows a chain of pointers).
enum class AccessPattern { sequential, strided, random, dependent };

/// `reads` of `element` bytes each from `working_set` bytes that were touched before, by as many threads as help.
struct MemoryAccess {
  static constexpr std::string_view word = "memory_access";
  AccessPattern pattern = AccessPattern::sequential;
  double reads = 1.0;
  Bytes element = Bytes(4.0);
  Bytes stride;  ///< between the reads of neighbouring threads (strided)
  Bytes working_set = Bytes(4.0);

  [[nodiscard]] Flops operations() const { return Flops(0.0); }
  /// Data in caches is not read again.
  [[nodiscard]] Bytes traffic(Bytes /*element*/) const { return std::min(reads * element, working_set); }
  [[nodiscard]] Bytes result(Bytes /*element*/) const { return Bytes(0.0); }
  bool operator==(const MemoryAccess&) const = default;
};

/// Every kind of operator, with a comma between two: alternatives here, declarations in cost/kernels.hpp.
#define FORETRAIN_OPERATORS(each) each(Matmul), each(Convolution), each(Attention), each(Streaming), each(MemoryAccess)

#define FORETRAIN_OPERATOR_TYPE(Work) Work
using OperatorWork = std::variant<FORETRAIN_OPERATORS(FORETRAIN_OPERATOR_TYPE)>;
#undef FORETRAIN_OPERATOR_TYPE

/// Stretches of a layer, where it matters which: attention or the state space in its place, what routes tokens, and
/// what their experts do with them between the two exchanges.
enum class LayerPart { rest, attention, router, experts };

/// Role of an operator in its layer, where its work leaves that open: recomputation and adapters tell a block's
/// products by it, processors their loops. A product's is that of the forward pass; a loop's that of both.
enum class OperatorRole {
  any,
  query,  ///< products of a block
  key,
  value,
  joined_qkv,
  out_of_latent,  ///< queries, or keys and values, out of latent vectors
  gate,
  up,  ///< with the gate, where the two are one product
  down,
  norm,  ///< loops
  activation,
  softmax,
  dropout,
  max_pooling,
  average_pooling,
  loss,
  shortening,  ///< gradients become narrower
};

/// `name` is for people.
struct Operator {
  std::string name;
  OperatorWork work;
  Precision precision = Precision::fp32;
  int kernels = 1;                  ///< device kernels it launches in eager mode; also the number of host dispatches
  bool reads_weights_only = false;  ///< if weights do not change, a compiler computes it once (constant folding)
  LayerPart part = LayerPart::rest;
  OperatorRole role = OperatorRole::any;
  bool backward = false;  ///< belongs to a backward pass
  bool operator==(const Operator&) const = default;
};

inline Operator in_role(OperatorRole role, Operator op) {
  op.role = role;
  return op;
}

/// A memory-bound operator that reads and writes so many numbers of `precision` for each of `elements`, an operation
/// for each number read. Elementwise ones are fusible.
Operator streaming_operator(std::string name, StreamingKind kind, double elements, double reads, double writes,
                            Precision precision, int kernels = 1);

/// Multiplications and additions that the mathematics needs (2·m·n·k for a product), independent of the algorithm.
Flops flops(const Operator& op);

/// Least traffic to device memory: each operand read once, each result written once.
Bytes minimum_traffic(const Operator& op);

}  // namespace foretrain
