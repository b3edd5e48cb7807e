// The GEMM of which matmuls, convolutions and attention are made.
#pragma once

#include <optional>

#include "model/cost/calibration.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/hardware/gpu.hpp"

namespace foretrain {

/// Bytes that a multiprocessor reads from its shared memory a clock: 32 banks of 32 bit (CUDA C++ Programming Guide).
inline constexpr double shared_bytes_per_clock = 128.0;

/// `batch` products C[m,n] = A[m,k] · B[k,n]. Traffic is stated apart from the shape, because an implicit product
/// (convolution) reads less than its operands' sizes.
struct Gemm {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  Precision precision = Precision::fp32;
  Bytes operands;    ///< A and B once
  Bytes result;      ///< reads and writes of C
  Bytes load_width;  ///< longest load that every row's start allows; zero: 16 bytes, the longest there is
  std::optional<double> exposed_share = std::nullopt;  ///< of a convolution's kernels; else the products'
  double speed = 1.0;                                  ///< between start and drain, over a plain product's
  bool narrow_tiles = false;          ///< tensor-core kernels of sides below 64 exist, as for convolutions
  double address_instructions = 0.0;  ///< on CUDA cores, for each element put into a tile, between multiplications
  bool whole_sums = false;            ///< on CUDA cores by kernels that do not divide k among thread blocks
  bool across_k = false;              ///< both operands lie so that no instruction for a whole tile reads them
  /// The products are one launch, and the row counts of its `batch` members differ, with m their mean. The last tile of
  /// each is half full on average, as what is left over is anything from one row to a whole tile.
  bool unequal_rows = false;
  /// An inference engine's linear layer. In nvfp4 it has one tile of 128 × 256, on one multiprocessor, and no split
  /// sums.
  bool of_engine = false;
  bool promoted = false;  ///< Hopper's tensor cores add up fp8 in few bits: sums go to fp32 registers as they grow
};

struct GemmTime {
  Seconds body;   ///< between the kernel's start and its drain
  Seconds fixed;  ///< start and drain; twice where K is split, for the kernel that adds the parts
  Bound bound = Bound::latency;

  [[nodiscard]] Seconds total() const { return body + fixed; }
};

/// Whether CUDA cores need every issue slot for multiplications, so that addresses and loads take turns with them.
bool shares_issue_slots(const Gpu& gpu);

/// Time on the device. The library's choice among tile shapes and split-K factors is taken to be the best, but on CUDA
/// cores (takes_vector_tile). For tiles of a × b, T of them on S multiprocessors, r resident on each, and s-fold
/// splitting of K:
///   waves   = ceil(T·s / S), rounds = ceil(waves / r)
///   compute = waves · (k/s) · (longer of 2ab · (1 + loss · (1/a + 1/b)) / rate and (a + b) / loads per second,
///                              and (a + b) · address instructions)
///   memory  = operands (again for each round that no longer finds them in the L2) and result over bandwidth
///   body    = rounds · tile start + split parts through the L2 + longer + exposed share · shorter
/// where kernels that stay on their multiprocessor (Hopper on) start no tile, and instructions with tensor memory
/// (Blackwell) lose nothing to a tile's edges but wait for shared memory, which they read both operands from;
/// and compute at the clock that the board's power leaves a kernel of so much arithmetic in its time (cost/power.hpp).
GemmTime gemm_time(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration);

}  // namespace foretrain
