// Operators: what one kernel (or a short fixed sequence of kernels) computes, by shape. No device, no time.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "model/base/quantity.hpp"
#include "model/hardware/precision.hpp"
#include "model/workload/attention.hpp"

namespace foretrain {

/// C[m,n] (+)= A[m,k] · B[k,n], `batch` independent products. Matrices lie row by row: k is contiguous in A and n in B
/// unless the operand is transposed (a linear layer, x · Wᵀ, has B transposed).
struct Matmul {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool accumulate_fp32 = false;  ///< adds into an fp32 result (gradient accumulation): reads and writes 4-byte C
  bool accumulate = false;       ///< adds into a result of its own precision: reads C too
  bool transpose_a = false;      ///< A is stored as [k,m]
  bool transpose_b = false;      ///< B is stored as [n,k]
  bool padded = false;           ///< rows are padded to 16 bytes whatever their length
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
  std::int64_t n = 1, c = 1, h = 1, w = 1, k = 1, r = 1, s = 1, p = 1, q = 1;
  std::int64_t stride = 1, groups = 1;
  ConvolutionPass pass = ConvolutionPass::forward;
  bool operator==(const Convolution&) const = default;
};

enum class StreamingKind { elementwise, reduction, gather, optimizer };

/// Work bound by memory traffic: elementwise chains, norms, softmax, pooling, embedding look-ups, optimizer updates.
struct Streaming {
  StreamingKind kind = StreamingKind::elementwise;
  Bytes read;
  Bytes written;
  Flops flops;
  bool fusible = false;  ///< a compiler may merge it into its producer: the intermediate is then never written
  bool operator==(const Streaming&) const = default;
};

/// How neighbouring threads' reads lie: one behind the other, a stride apart, anywhere, or each read's address coming
/// out of the read before it (one thread follows a chain of pointers).
enum class AccessPattern { sequential, strided, random, dependent };

/// `reads` of `element` bytes each from `working_set` bytes that were touched before, by as many threads as help.
struct MemoryAccess {
  AccessPattern pattern = AccessPattern::sequential;
  double reads = 1.0;
  Bytes element = Bytes(4.0);
  Bytes stride;  ///< between the reads of neighbouring threads (strided)
  Bytes working_set = Bytes(4.0);
  bool operator==(const MemoryAccess&) const = default;
};

using OperatorWork = std::variant<Matmul, Convolution, Attention, Streaming, MemoryAccess>;

struct Operator {
  std::string name;
  OperatorWork work;
  Precision precision = Precision::fp32;
  int kernels = 1;                  ///< device kernels it launches in eager mode; also the number of host dispatches
  bool reads_weights_only = false;  ///< where weights do not change, a compiler computes it once (constant folding)
  bool operator==(const Operator&) const = default;
};

/// A memory-bound operator that reads and writes so many numbers of `precision` for each of `elements`, an operation
/// for each number read. Elementwise ones are fusible.
Operator streaming_operator(std::string name, StreamingKind kind, double elements, double reads, double writes,
                            Precision precision, int kernels = 1);

/// Multiplications and additions that the mathematics needs (2·m·n·k for a product), independent of the algorithm.
Flops flops(const Operator& op);

/// Least traffic to device memory: each operand read once, each result written once.
Bytes minimum_traffic(const Operator& op);

}  // namespace foretrain
