#include <algorithm>
#include <cmath>

#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// Tensor cores take channels in groups of eight (cuDNN developer guide, tensor-core operations).
constexpr std::int64_t channel_multiple = 8;

// Winograd's minimal filtering F(a×a, r×r): a tile of a×a outputs takes (a+r-1)² multiplications (Lavin and Gray 2016).
constexpr std::int64_t winograd_outputs = 4;

// Volta was the first to compute addresses beside fp32 arithmetic (NVIDIA V100 architecture whitepaper).
constexpr double separate_integer_units_since = 7.0;

std::int64_t padded(std::int64_t channels, bool tensor) {
  return tensor ? (channels + channel_multiple - 1) / channel_multiple * channel_multiple : channels;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The product that one group's convolution is: see gemm.hpp. A strided data gradient meets only one of stride² taps.
Gemm implicit_product(const Convolution& work, Precision precision, bool tensor, Bytes traffic) {
  const std::int64_t c = padded(work.c / work.groups, tensor), k = padded(work.k / work.groups, tensor);
  const std::int64_t taps = work.r * work.s;
  Gemm gemm;
  gemm.batch = work.groups;
  gemm.precision = precision;
  gemm.operands = traffic;
  switch (work.pass) {
    case ConvolutionPass::forward:
      gemm.m = work.n * work.p * work.q;
      gemm.n = k;
      gemm.k = c * taps;
      break;
    case ConvolutionPass::data_gradient:
      gemm.m = work.n * work.h * work.w;
      gemm.n = c;
      gemm.k = divide_up(k * taps, work.stride * work.stride);
      break;
    case ConvolutionPass::weight_gradient:
      gemm.m = k;
      gemm.n = c * taps;
      gemm.k = work.n * work.p * work.q;
      break;
  }
  return gemm;
}

KernelTime implicit_time(const Convolution& work, Precision precision, Bytes traffic, const Gpu& gpu,
                         const Calibration& calibration) {
  const ConvolutionConstants& constants = calibration.convolution;
  const bool tensor = uses_tensor_cores(gpu, precision);
  const GemmTime product = gemm_time(implicit_product(work, precision, tensor, traffic), gpu, calibration);
  double speed = tensor ? constants.tensor_efficiency : constants.vector_efficiency;
  if (!tensor && gpu.compute_capability < separate_integer_units_since) speed = constants.early_vector_efficiency;
  return {product.fixed + product.body / speed, product.bound};
}

bool winograd_applies(const Convolution& work, Precision precision) {
  return precision == Precision::fp32 && work.r == work.s && (work.r == 3 || work.r == 5) && work.stride == 1 &&
         work.groups == 1;
}

// Multiplications per channel pair and tile.
std::int64_t winograd_points(const Convolution& work) {
  return (winograd_outputs + work.r - 1) * (winograd_outputs + work.s - 1);
}

// Three kernels: transform the input (and the filter), multiply (a+r-1)² matrices of tiles × channels, transform back.
// Transformed tensors pass through memory.
KernelTime winograd_time(const Convolution& work, Precision precision, Bytes traffic, const Gpu& gpu,
                         const Calibration& calibration) {
  const std::int64_t points = winograd_points(work);
  const bool to_input = work.pass == ConvolutionPass::data_gradient;
  const std::int64_t image_tiles = work.n * divide_up(to_input ? work.h : work.p, winograd_outputs) *
                                   divide_up(to_input ? work.w : work.q, winograd_outputs);
  Gemm gemm{points, image_tiles, work.k, work.c, precision, {}, {}, {}, {}};
  if (to_input) std::swap(gemm.n, gemm.k);
  if (work.pass == ConvolutionPass::weight_gradient)
    gemm = {points, work.k, work.c, image_tiles, precision, {}, {}, {}, {}};
  const auto size = [&](std::int64_t rows, std::int64_t columns) {
    return static_cast<double>(points) * static_cast<double>(rows) * static_cast<double>(columns) *
           bytes_per_element(precision);
  };
  gemm.operands = size(gemm.m, gemm.k) + size(gemm.k, gemm.n);
  gemm.result = size(gemm.m, gemm.n);
  const GemmTime product = gemm_time(gemm, gpu, calibration);
  const Streaming transforms{StreamingKind::elementwise, traffic, gemm.operands + gemm.result, Flops(0), false};
  const KernelTime streaming = streaming_time(transforms, 3, gpu, calibration);
  return {(product.total() + streaming.device) / calibration.convolution.winograd_efficiency,
          product.total() > streaming.device ? product.bound : streaming.bound};
}

}  // namespace

double winograd_saving(const Convolution& work, Precision precision) {
  if (!winograd_applies(work, precision)) return 1.0;
  return static_cast<double>(winograd_outputs * winograd_outputs * work.r * work.s) /
         static_cast<double>(winograd_points(work));
}

// The faster of an implicit matrix product, slower than the plain one because addresses are gathered, and Winograd's
// algorithm where it applies. Grouped convolutions with few channels per group are bound by traffic, which the tile
// quantisation of the product would overstate: they run at streaming speed.
KernelTime convolution_time(const Convolution& work, Precision precision, const Gpu& gpu,
                            const Calibration& calibration) {
  const Operator op{"", work, precision, 1};
  const Bytes traffic = minimum_traffic(op);
  if (work.groups > 1 && work.c / work.groups < channel_multiple) {
    return streaming_time({StreamingKind::reduction, traffic, Bytes(0), flops(op), false}, 1, gpu, calibration);
  }
  const KernelTime implicit = implicit_time(work, precision, traffic, gpu, calibration);
  if (!winograd_applies(work, precision)) return implicit;
  const KernelTime winograd = winograd_time(work, precision, traffic, gpu, calibration);
  return winograd.device < implicit.device ? winograd : implicit;
}

}  // namespace foretrain
