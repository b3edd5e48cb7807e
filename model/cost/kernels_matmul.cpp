#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/number.hpp"
#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/measured_matmul.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// The smaller of the common tiles that libraries cut a product's result into: assumption.
constexpr double block_rows = 64.0, block_columns = 64.0;

// The longest power of two of bytes, at most 16, that divides every row of a matrix whose rows have `length` elements;
// a vector is one row.
Bytes aligned_load(std::int64_t rows, std::int64_t length, Bytes element) {
  if (length == 1) length = rows;
  constexpr Bytes longest(16.0);
  const std::int64_t divides = length & -length;  // the longest power of two that does
  return std::min(longest, number(divides) * element);
}

// Hopper's instructions for a whole tile turn operands round as they read them in formats of two bytes alone (PTX ISA,
// wgmma.mma_async). Of four bytes one operand can go through registers, not both, as the gradients of weights ask for.
bool lies_across_k(const Matmul& work, Precision precision, const Gpu& gpu) {
  const bool both = work.transpose_a && !work.transpose_b;
  return both && bytes_per_element(precision) == Bytes(4.0) && has_warp_groups(gpu) && !has_tensor_memory(gpu);
}

}  // namespace

double product_blocks(double batch, double m, double n) {
  return batch * std::ceil(m / block_rows) * std::ceil(n / block_columns);
}

double thread_blocks(const Matmul& w) { return product_blocks(number(w.batch), number(w.m), number(w.n)); }

namespace {

KernelTime product_time(const Matmul& work, Precision precision, bool of_engine, const Gpu& gpu,
                        const Calibration& calibration) {
  const Bytes element = bytes_per_element(precision);
  const double batch = number(work.batch);
  const double m = number(work.m), n = number(work.n), k = number(work.k);
  Gemm gemm{work.batch, work.m, work.n, work.k, precision, {}, {}, {}};
  gemm.of_engine = of_engine;
  // Transformer Engine (module/base.py: _2X_ACC_DGRAD, _2X_ACC_WGRAD) and torchao add up gradients so, which read the
  // weights as they lie, and not the forward pass.
  gemm.promoted = precision == Precision::fp8 && !work.transpose_b;
  gemm.across_k = lies_across_k(work, precision, gpu);
  gemm.unequal_rows = work.grouped && work.batch > 1 && !work.transpose_a;  // else the sums differ in length
  gemm.operands = batch * (m * k + k * n) * element;
  gemm.result = batch * m * n *
                (work.accumulate_fp32 ? 2.0 * bytes_per_element(Precision::fp32)
                                      : (work.accumulate ? 2.0 : 1.0) * bytes_per_element(result_precision(precision)));
  if (!work.padded) {
    const auto [a_rows, a_length] = work.transpose_a ? std::pair(work.k, work.m) : std::pair(work.m, work.k);
    const auto [b_rows, b_length] = work.transpose_b ? std::pair(work.n, work.k) : std::pair(work.k, work.n);
    gemm.load_width = std::min(aligned_load(a_rows, a_length, element), aligned_load(b_rows, b_length, element));
    // Libraries have one alignment for all operands of a kernel, the result among them (cublasLt heuristics on an H200
    // take cutlass_75_..._align1 for results of 50,257 columns); kernels for CUDA cores load and store single numbers.
    const Bytes stored = aligned_load(work.m, work.n, bytes_per_element(result_precision(precision)));
    if (uses_tensor_cores(gpu, precision)) gemm.load_width = std::min(gemm.load_width, stored);
  }
  const GemmTime time = gemm_time(gemm, gpu, calibration);
  const double factor = calibration.measured_matmuls.empty() ? 1.0 : measured_factor(work, precision, calibration);
  return {time.total() * factor, time.bound};
}

}  // namespace

KernelTime kernel_time(const Matmul& work, Precision precision, int /*kernels*/, const Gpu& gpu,
                       const Calibration& calibration) {
  return product_time(work, precision, false, gpu, calibration);
}

Seconds engine_product_time(const Matmul& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  return product_time(work, precision, true, gpu, calibration).device;
}

}  // namespace foretrain
