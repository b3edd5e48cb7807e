#include <algorithm>
#include <cmath>

#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// Tensor cores take channels in groups of eight (cuDNN developer guide, tensor-core operations).
constexpr std::int64_t channel_multiple = 8;

std::int64_t padded(std::int64_t channels, bool tensor) {
  return tensor ? (channels + channel_multiple - 1) / channel_multiple * channel_multiple : channels;
}

// The product that one group's convolution is: see gemm.hpp. A strided data gradient meets only one of stride² taps.
Gemm implicit_product(const Convolution& work, Precision precision, bool tensor) {
  const std::int64_t c = padded(work.c / work.groups, tensor), k = padded(work.k / work.groups, tensor);
  const std::int64_t taps = work.r * work.s;
  Gemm gemm;
  gemm.batch = work.groups;
  gemm.precision = precision;
  switch (work.pass) {
    case ConvolutionPass::forward:
      gemm.m = work.n * work.p * work.q;
      gemm.n = k;
      gemm.k = c * taps;
      break;
    case ConvolutionPass::data_gradient: {
      const std::int64_t phases = work.stride * work.stride;
      gemm.m = work.n * work.h * work.w;
      gemm.n = c;
      gemm.k = (k * taps + phases - 1) / phases;
      break;
    }
    case ConvolutionPass::weight_gradient:
      gemm.m = k;
      gemm.n = c * taps;
      gemm.k = work.n * work.p * work.q;
      break;
  }
  return gemm;
}

bool winograd_applies(const Convolution& work, Precision precision) {
  return precision == Precision::fp32 && work.r == 3 && work.s == 3 && work.stride == 1 && work.groups == 1;
}

}  // namespace

// Implicit matrix product, slower than the plain one because addresses are gathered; Winograd kernels save arithmetic.
// Grouped convolutions with few channels per group are bound by traffic, which the tile quantisation of the product
// would overstate: they run at streaming speed.
KernelTime convolution_time(const Convolution& work, Precision precision, const Gpu& gpu,
                            const Calibration& calibration) {
  const ConvolutionConstants& constants = calibration.convolution;
  const bool tensor = uses_tensor_cores(gpu, precision);
  const Operator op{"", work, precision, 1};
  const Bytes traffic = minimum_traffic(op);
  if (work.groups > 1 && work.c / work.groups < channel_multiple) {
    return streaming_time({StreamingKind::reduction, traffic, Bytes(0), flops(op), false}, 1, gpu, calibration);
  }
  Gemm gemm = implicit_product(work, precision, tensor);
  gemm.operands = traffic;
  const GemmTime product = gemm_time(gemm, gpu, calibration);

  double speed = tensor ? constants.tensor_efficiency : constants.vector_efficiency;
  if (work.pass == ConvolutionPass::weight_gradient) speed *= constants.weight_gradient_efficiency;
  if (winograd_applies(work, precision)) {
    const double channels = static_cast<double>(std::min(work.c, work.k));
    speed *= 1.0 + (constants.winograd_gain - 1.0) * channels / (channels + constants.winograd_channels);
  }
  const Seconds fixed = product.fixed;
  const Seconds floor = traffic / (gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency);
  const Seconds arithmetic = product.body / speed;
  return {fixed + std::max(arithmetic, floor), arithmetic >= floor ? product.bound : Bound::memory};
}

}  // namespace foretrain
