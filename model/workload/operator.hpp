// Operators: what one kernel (or a short fixed sequence of kernels) computes, by shape. No device, no time.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "model/base/quantity.hpp"
#include "model/hardware/precision.hpp"
#include "model/workload/attention.hpp"

namespace foretrain {

/// C[m,n] (+)= A[m,k] · B[k,n], `batch` independent products.
struct Matmul {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool accumulate_fp32 = false;  ///< adds into an fp32 result (gradient accumulation): reads and writes 4-byte C
  bool operator==(const Matmul&) const = default;
};

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

using OperatorWork = std::variant<Matmul, Convolution, Attention, Streaming>;

struct Operator {
  std::string name;
  OperatorWork work;
  Precision precision = Precision::fp32;
  int kernels = 1;                  ///< device kernels it launches in eager mode; also the number of host dispatches
  bool reads_weights_only = false;  ///< where weights do not change, a compiler computes it once (constant folding)
  bool operator==(const Operator&) const = default;
};

/// Multiplications and additions that the mathematics needs (2·m·n·k for a product), independent of the algorithm.
Flops flops(const Operator& op);

/// Least traffic to device memory: each operand read once, each result written once.
Bytes minimum_traffic(const Operator& op);

}  // namespace foretrain
