#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "model/base/number.hpp"
#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// Tensor cores take channels in groups of eight (cuDNN developer guide, tensor-core operations).
constexpr std::int64_t channel_multiple = 8;

// Winograd's minimal filtering F(a×a, r×r): a tile of a×a outputs takes (a+r-1)² multiplications (Lavin and Gray 2016).
constexpr std::int64_t winograd_outputs = 4;

// Fourier transforms of tiles of 32 × 32, or of 16 × 16 where a whole image fits: the names of cuDNN's kernels
// (fft2d_r2c_32x32, fft2d_r2c_16x16; winogradForwardOutput4x4 for the other).
constexpr std::int64_t fourier_sizes[] = {16, 32};

// Volta was the first to compute addresses beside fp32 arithmetic (NVIDIA V100 architecture whitepaper).
constexpr double separate_integer_units_since = 7.0;

// cuDNN's kernels for Winograd's algorithm were written for Maxwell to Volta (maxwell_scudnn_winograd,
// volta_scudnn_winograd); later GPUs run those, or others that are made of general products.
constexpr double own_winograd_until = 8.0;

double transform_efficiency(const Gpu& gpu, const ConvolutionConstants& constants) {
  return gpu.compute_capability < own_winograd_until ? constants.transform_efficiency
                                                     : constants.late_transform_efficiency;
}

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

// Tiles of a product whose images are gathered take this many filters (weight gradients: rows of filters) at once;
// every tile gathers its images anew. From 64 to 768 filters of an H100's and an H200's convolutions of three channels
// take time as 64 do (validate/measurements): modelling choice.
constexpr std::int64_t gathering_tile = 64;

// If a pixel's channels are fewer than the longest load takes, as three colours are, no copy engine puts images into
// tiles: addresses are worked out for every piece, beside the multiplication on tensor cores.
Seconds gathering_time(const Convolution& work, const Gpu& gpu, const ConvolutionConstants& constants) {
  const bool of_results = work.pass == ConvolutionPass::data_gradient;
  const std::int64_t channels = of_results ? work.k : work.c;
  if (channels >= channel_multiple || work.groups > 1) return Seconds(0.0);
  const std::int64_t pixels = of_results ? work.n * work.h * work.w : work.n * work.p * work.q;
  const double pieces = number(pixels) * number(work.r * work.s * channels / std::gcd(channels, channel_multiple));
  const double tiles = number(divide_up(of_results ? work.c : work.k, gathering_tile));
  return Seconds(pieces * tiles * constants.address_instructions / (integer_lanes * gpu.sms * gpu.boost_clock.value()));
}

// Speed over a plain product's. Images are gathered beside the multiplication, which waits for them the more, the more
// a multiprocessor multiplies in a clock: the constant is that of A100's 2,048 operations of two bytes.
double gathering_speed(Precision precision, const Gpu& gpu, const ConvolutionConstants& constants) {
  constexpr double operations_of_constant = 2048.0;
  const double clocks = gpu.sms * gpu.boost_clock.value();
  if (clocks == 0.0) return constants.tensor_efficiency;
  const double width = bytes_per_element(precision) / bytes_per_element(Precision::fp16);
  const double operations = width * gpu.matrix_rate(precision).value() / clocks;
  return 1.0 / (1.0 + (1.0 / constants.tensor_efficiency - 1.0) * operations / operations_of_constant);
}

KernelTime implicit_time(const Convolution& work, Precision precision, Bytes traffic, const Gpu& gpu,
                         const Calibration& calibration) {
  const ConvolutionConstants& constants = calibration.convolution;
  const bool tensor = uses_tensor_cores(gpu, precision);
  Gemm gemm = implicit_product(work, precision, tensor, traffic);
  const bool in_turn = gpu.compute_capability < separate_integer_units_since || shares_issue_slots(gpu);
  if (tensor) {
    gemm.speed = gathering_speed(precision, gpu, constants);
    gemm.exposed_share = constants.exposed_share;
  }
  if (!tensor && in_turn) gemm.address_instructions = constants.address_instructions;
  gemm.narrow_tiles = true;
  // cuDNN divides the sums of weight gradients alone (cudnnConvolutionBwdFilterAlgo_t has algorithms with atomics).
  gemm.whole_sums = !tensor && work.pass != ConvolutionPass::weight_gradient;
  const GemmTime product = gemm_time(gemm, gpu, calibration);
  const Seconds gathering = tensor ? gathering_time(work, gpu, constants) : Seconds(0.0);
  if (gathering > product.total()) return {gathering, Bound::compute};
  return {product.total(), product.bound};
}

// cuDNN's kernels for tensor cores read NHWC. What lies in NCHW its own kernels turn round before, and back behind
// (nchwToNhwcKernel, nhwcToNchwKernel). Only a filter of one tap in four bytes is a product of matrices as they lie
// (names of cuDNN 9's kernels in steps of ResNet-50, validate/measurements/2026-11-26-h200).
Seconds turning_time(const Convolution& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  if (work.format == MemoryFormat::nhwc || !uses_tensor_cores(gpu, precision)) return Seconds(0.0);
  const Bytes element = bytes_per_element(precision);
  if (work.r * work.s == 1 && work.stride == 1 && element == Bytes(4.0)) return Seconds(0.0);
  const Bytes images = (work.inputs() + work.outputs()) * element;
  const Streaming passes{StreamingKind::elementwise, images, images, Flops(0.0)};
  return kernel_time(passes, precision, 2, gpu, calibration).device;
}

// An algorithm that transforms tiles of the images and the filters, so that a convolution becomes one product of tiles
// and channels for each point of a tile.
struct Transform {
  std::int64_t points;         // a transformed tile has
  std::int64_t rows, columns;  // outputs of a tile
  std::int64_t numbers;        // in a point: 1 real, 2 complex

  // Multiplications for each pair of channels and tile; a complex one is four.
  [[nodiscard]] std::int64_t multiplications() const { return points * numbers * numbers; }
};

// Tiles of all images of what the pass computes (weight gradient: of what it reads).
std::int64_t image_tiles(const Convolution& work, const Transform& transform) {
  const bool to_input = work.pass == ConvolutionPass::data_gradient;
  return work.n * divide_up(to_input ? work.h : work.p, transform.rows) *
         divide_up(to_input ? work.w : work.q, transform.columns);
}

bool transformable(const Convolution& work, Precision precision) {
  return precision == Precision::fp32 && work.stride == 1 && work.groups == 1 && work.r * work.s > 1;
}

std::optional<Transform> winograd(const Convolution& work, Precision precision) {
  if (!transformable(work, precision) || work.r != work.s || (work.r != 3 && work.r != 5)) return {};
  const std::int64_t side = winograd_outputs + work.r - 1;
  return Transform{side * side, winograd_outputs, winograd_outputs, 1};
}

// A product of spectra is a convolution (Mathieu et al. 2013, arXiv 1312.5851; Vasilache et al. 2014, arXiv 1412.7580).
// A tile keeps the outputs that no edge has wrapped into; one half of a real tile's spectrum is the other's mirror
// image.
std::optional<Transform> fourier(const Convolution& work, Precision precision) {
  if (!transformable(work, precision)) return {};
  const bool to_input = work.pass == ConvolutionPass::data_gradient;
  const std::int64_t rows = to_input ? work.h : work.p, columns = to_input ? work.w : work.q;
  for (const std::int64_t size : fourier_sizes) {
    const bool largest = size == *std::rbegin(fourier_sizes);
    const std::int64_t kept_rows = size - work.r + 1, kept_columns = size - work.s + 1;
    if (kept_rows < 1 || kept_columns < 1) continue;
    if (largest || (rows <= kept_rows && columns <= kept_columns)) {
      return Transform{size * (size / 2 + 1), kept_rows, kept_columns, 2};
    }
  }
  return {};
}

// Every algorithm that transforms: its tile for a convolution, nothing where it does not apply.
using FindTransform = std::optional<Transform> (*)(const Convolution&, Precision);
constexpr FindTransform transforming_algorithms[] = {winograd, fourier};

// Multiplications over those of the plain algorithm.
double relative_work(const Convolution& work, const Transform& transform) {
  return number(image_tiles(work, transform)) * number(transform.multiplications()) /
         (number(work.n) * number(work.p) * number(work.q) * number(work.r) * number(work.s));
}

// Three kernels: transform the input (and the filter), multiply a matrix of tiles × channels for each point, transform
// back. Transformed tensors pass through memory. A product of complex matrices [m,k] · [k,n] is a real one of
// [m,2k] · [2k,2n], of which the second operand is stored once.
KernelTime transform_time(const Convolution& work, Precision precision, const Transform& transform, Bytes traffic,
                          const Gpu& gpu, const Calibration& calibration) {
  std::int64_t m = image_tiles(work, transform), n = work.k, k = work.c;
  if (work.pass == ConvolutionPass::data_gradient) std::swap(n, k);
  if (work.pass == ConvolutionPass::weight_gradient) {
    k = std::exchange(m, n);
    n = work.c;
  }
  const auto size = [&](std::int64_t rows, std::int64_t columns) {
    return number(transform.points) * number(transform.numbers) * number(rows) * number(columns) *
           bytes_per_element(precision);
  };
  Gemm gemm;
  gemm.batch = transform.points;
  gemm.m = m;
  gemm.n = n * transform.numbers;
  gemm.k = k * transform.numbers;
  gemm.precision = precision;
  gemm.operands = size(m, k) + size(k, n);
  gemm.result = size(m, n);
  gemm.narrow_tiles = true;
  const GemmTime product = gemm_time(gemm, gpu, calibration);
  const Streaming transforms{StreamingKind::elementwise, traffic, gemm.operands + gemm.result, Flops(0), false};
  const KernelTime streaming = kernel_time(transforms, precision, 3, gpu, calibration);
  return {(product.total() + streaming.device) / transform_efficiency(gpu, calibration.convolution),
          product.total() > streaming.device ? product.bound : streaming.bound};
}

}  // namespace

// Thread blocks of the implicit GEMM.
double thread_blocks(const Convolution& w) {
  const double groups = number(w.groups), out = number(w.k) / groups, in = number(w.c) / groups;
  switch (w.pass) {
    case ConvolutionPass::forward:
      return product_blocks(groups, number(w.n) * number(w.p) * number(w.q), out);
    case ConvolutionPass::data_gradient:
      return product_blocks(groups, number(w.n) * number(w.h) * number(w.w), in);
    case ConvolutionPass::weight_gradient:
      break;
  }
  return product_blocks(groups, out, in * number(w.r) * number(w.s));
}

double transform_saving(const Convolution& work, Precision precision) {
  double least = 1.0;
  for (const FindTransform find : transforming_algorithms) {
    const std::optional<Transform> transform = find(work, precision);
    if (transform) least = std::min(least, relative_work(work, *transform));
  }
  return 1.0 / least;
}

// The fastest of an implicit GEMM, slower than the plain one because addresses are gathered, and the
// algorithms that transform the images where they apply. Grouped convolutions with few channels per group are bound by
// traffic, which the tile quantisation of the product would overstate: they run at streaming speed.
KernelTime kernel_time(const Convolution& work, Precision precision, int /*kernels*/, const Gpu& gpu,
                       const Calibration& calibration) {
  const Bytes traffic = work.traffic(bytes_per_element(precision));
  const Seconds plain = work.operations() / gpu.matrix_rate(precision);
  if (work.groups > 1 && work.c / work.groups < channel_multiple) {
    const Streaming pass{StreamingKind::reduction, traffic, Bytes(0), work.operations(), false};
    return kernel_time(pass, precision, 1, gpu, calibration);
  }
  KernelTime fastest = implicit_time(work, precision, traffic, gpu, calibration);
  fastest.device += turning_time(work, precision, gpu, calibration);
  for (const FindTransform find : transforming_algorithms) {
    const std::optional<Transform> transform = find(work, precision);
    if (!transform) continue;
    // It cannot be faster than its multiplications alone.
    const Seconds least = plain * relative_work(work, *transform) / transform_efficiency(gpu, calibration.convolution);
    if (least >= fastest.device) continue;
    const KernelTime time = transform_time(work, precision, *transform, traffic, gpu, calibration);
    if (time.device < fastest.device) fastest = time;
  }
  return fastest;
}

}  // namespace foretrain
