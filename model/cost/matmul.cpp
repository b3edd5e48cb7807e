#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"

namespace foretrain {

KernelTime matmul_time(const Matmul& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  const Bytes element = bytes_per_element(precision);
  const double batch = static_cast<double>(work.batch);
  const double m = static_cast<double>(work.m), n = static_cast<double>(work.n), k = static_cast<double>(work.k);
  const Bytes result = batch * m * n * (work.accumulate_fp32 ? 2.0 * bytes_per_element(Precision::fp32) : element);
  const GemmTime time = gemm_time(
      {work.batch, work.m, work.n, work.k, precision, batch * (m * k + k * n) * element, result}, gpu, calibration);
  return {time.total(), time.bound};
}

}  // namespace foretrain
