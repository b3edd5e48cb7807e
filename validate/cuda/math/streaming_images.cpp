// Batch norm and pooling.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "validate/cuda/math/probe.hpp"
#include "validate/cuda/math/streaming.hpp"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

struct Images {
  ImageShape shape;
  Format format;
  [[nodiscard]] std::int64_t elements() const { return shape.batch * shape.channels * shape.plane; }
  [[nodiscard]] std::int64_t place(std::int64_t image, std::int64_t channel, std::int64_t i) const {
    return (image * shape.channels + channel) * shape.plane + i;
  }
};

enum BatchNormTensor { bn_x, bn_scale, bn_shift, bn_sums, bn_result, bn_dy, bn_gradients };

void run_batch_norm(const Images& images, const StreamingOperands& t, cudaStream_t stream) {
  batch_norm_forward(images.format, t[bn_x], floats(t[bn_scale]), floats(t[bn_shift]), t[bn_result], floats(t[bn_sums]),
                     images.shape, stream);
}

/// Sum over a channel of the numbers of `compute(x, dy)`; without dy it is 0.
double channel_sum(const Images& images, const StreamingOperands& t, std::int64_t channel, bool gradient,
                   const std::function<double(double, double)>& compute, cudaStream_t stream) {
  double sum = 0.0;
  for (std::int64_t image = 0; image < images.shape.batch; ++image) {
    const std::int64_t start = images.place(image, channel, 0);
    const auto x = read_elements(images.format, t[bn_x], start, 1, images.shape.plane, stream);
    std::vector<double> dy(x.size(), 0.0);
    if (gradient) dy = read_elements(images.format, t[bn_dy], start, 1, images.shape.plane, stream);
    for (std::size_t i = 0; i < x.size(); ++i) sum += compute(x[i], dy[i]);
  }
  return sum;
}

struct ChannelStatistics {
  double mean, inverse;
};
ChannelStatistics statistics_of(const Images& images, const StreamingOperands& t, std::int64_t channel,
                                cudaStream_t stream) {
  const auto count = static_cast<double>(images.shape.batch * images.shape.plane);
  const double mean = channel_sum(
                          images, t, channel, false, [](double x, double) { return x; }, stream) /
                      count;
  const double variance =
      channel_sum(
          images, t, channel, false, [mean](double x, double) { return (x - mean) * (x - mean); }, stream) /
      count;
  return {mean, 1.0 / std::sqrt(variance + 1e-5)};
}

/// Compares sampled numbers of a channel with expected(x, dy).
void expect_channel(const char* what, const Images& images, const StreamingOperands& t, std::int64_t channel,
                    bool gradient, const std::function<double(double, double)>& expected, cudaStream_t stream) {
  for (const std::int64_t image : samples_below(images.shape.batch, 2)) {
    for (const std::int64_t i : samples_below(images.shape.plane, 4)) {
      const std::int64_t place = images.place(image, channel, i);
      const double dy = gradient ? read_element(images.format, t[bn_dy], place, stream) : 0.0;
      const double right = expected(read_element(images.format, t[bn_x], place, stream), dy);
      expect_close(what, read_element(images.format, t[bn_result], place, stream), right,
                   tolerance_of(images.format, right, 1e-3) + 1e-3);
    }
  }
}

void verify_batch_norm(const Images& images, const StreamingOperands& t, cudaStream_t stream) {
  for (const std::int64_t channel : samples_below(images.shape.channels, 2)) {
    const ChannelStatistics s = statistics_of(images, t, channel, stream);
    const double scale = read_element(Format::fp32, t[bn_scale], channel, stream);
    const double shift = read_element(Format::fp32, t[bn_shift], channel, stream);
    const auto expected = [&](double x, double) { return (x - s.mean) * s.inverse * scale + shift; };
    expect_channel("batch norm", images, t, channel, false, expected, stream);
  }
}

void verify_batch_norm_gradient(const Images& images, const StreamingOperands& t, cudaStream_t stream) {
  const auto count = static_cast<double>(images.shape.batch * images.shape.plane);
  for (const std::int64_t channel : samples_below(images.shape.channels, 2)) {
    const ChannelStatistics s = statistics_of(images, t, channel, stream);
    const double scale = read_element(Format::fp32, t[bn_scale], channel, stream);
    const auto normed = [s](double x) { return (x - s.mean) * s.inverse; };
    const double of_dy = channel_sum(
                             images, t, channel, true, [](double, double dy) { return dy; }, stream) /
                         count;
    const double of_product =
        channel_sum(
            images, t, channel, true, [&](double x, double dy) { return dy * normed(x); }, stream) /
        count;
    const auto expected = [&](double x, double dy) {
      return scale * s.inverse * (dy - of_dy - normed(x) * of_product);
    };
    expect_channel("batch norm gradient", images, t, channel, true, expected, stream);
  }
}

struct Pooling {
  PoolingShape shape;
  Format format;
  bool maximum;
  [[nodiscard]] std::int64_t inputs() const { return shape.maps * shape.height * shape.width; }
  [[nodiscard]] std::int64_t outputs() const { return shape.maps * shape.out_height * shape.out_width; }
};

Pooling pooling_of(const OperatorSpec& spec) {
  const std::int64_t kernel = spec.integer("kernel"), stride = spec.integer_or("stride", kernel);
  const std::int64_t pad = spec.integer_or("pad", 0), height = spec.integer("height"), width = spec.integer("width");
  const std::string function = spec.text_or("function", "max");
  if (kernel < 1 || stride < 1 || kernel > height + 2 * pad || kernel > width + 2 * pad ||
      (function != "max" && function != "average")) {
    throw std::invalid_argument("pooling: a kernel that does not fit, or a function that is neither max nor average");
  }
  Pooling pooling{};
  pooling.shape = {spec.integer("batch") * spec.integer("channels"),
                   height,
                   width,
                   (height + 2 * pad - kernel) / stride + 1,
                   (width + 2 * pad - kernel) / stride + 1,
                   static_cast<int>(kernel),
                   static_cast<int>(stride),
                   static_cast<int>(pad)};
  pooling.format = streaming_format(spec);
  pooling.maximum = function == "max";
  return pooling;
}

enum PoolingTensor { pool_x, pool_y, pool_indices };

std::int64_t* indices_of(const Pooling& pooling, const StreamingOperands& t) {
  return pooling.maximum ? static_cast<std::int64_t*>(t[pool_indices]) : nullptr;
}

/// Places of the input that window `place` of a map covers.
std::vector<std::int64_t> window(const PoolingShape& s, std::int64_t place) {
  const std::int64_t top = place / s.out_width * s.stride - s.pad, left = place % s.out_width * s.stride - s.pad;
  std::vector<std::int64_t> places;
  for (std::int64_t h = std::max<std::int64_t>(top, 0); h < std::min(top + s.kernel, s.height); ++h) {
    for (std::int64_t w = std::max<std::int64_t>(left, 0); w < std::min(left + s.kernel, s.width); ++w) {
      places.push_back(h * s.width + w);
    }
  }
  return places;
}

double pooled(const Pooling& pooling, const void* x, std::int64_t output, cudaStream_t stream) {
  const PoolingShape& s = pooling.shape;
  const std::int64_t map = output / (s.out_height * s.out_width), place = output % (s.out_height * s.out_width);
  double sum = 0.0, largest = -std::numeric_limits<double>::infinity();
  for (const std::int64_t from : window(s, place)) {
    const double value = read_element(pooling.format, x, map * s.height * s.width + from, stream);
    sum += value;
    largest = std::max(largest, value);
  }
  return pooling.maximum ? largest : sum / (s.kernel * s.kernel);
}

/// Sum of the gradients of the windows that a number of the input lies in, or for the maximum won.
double spread(const Pooling& pooling, const StreamingOperands& t, std::int64_t input, cudaStream_t stream) {
  const PoolingShape& s = pooling.shape;
  const std::int64_t map = input / (s.height * s.width), place = input % (s.height * s.width);
  const std::int64_t windows = s.out_height * s.out_width;
  double sum = 0.0;
  for (std::int64_t p = 0; p < s.out_height; ++p) {
    const std::int64_t top = p * s.stride - s.pad;
    if (place / s.width < top || place / s.width >= top + s.kernel) continue;
    for (std::int64_t q = 0; q < s.out_width; ++q) {
      const std::int64_t left = q * s.stride - s.pad, output = map * windows + p * s.out_width + q;
      if (place % s.width < left || place % s.width >= left + s.kernel) continue;
      const double gradient = read_element(pooling.format, t[pool_y], output, stream);
      if (!pooling.maximum) {
        sum += gradient / (s.kernel * s.kernel);
      } else if (static_cast<std::int64_t>(read_element(Format::int64, t[pool_indices], output, stream)) == place) {
        sum += gradient;
      }
    }
  }
  return sum;
}

}  // namespace

StreamingParts batch_norm_parts(const OperatorSpec& spec) {
  const Images images{{spec.integer("batch"), spec.integer("channels"), spec.integer("height") * spec.integer("width")},
                      streaming_format(spec)};
  const std::int64_t channels = images.shape.channels;
  const bool backward = is_backward(spec);
  StreamingParts parts;
  parts.kernels = 2;
  parts.tensors = {{images.format, images.elements()},
                   {Format::fp32, channels, Use::own},
                   {Format::fp32, channels, Use::own},
                   {Format::fp32, 2 * channels, Use::own},
                   {images.format, images.elements(), Use::written}};
  if (!backward) {
    parts.launch = [images](const auto& t, cudaStream_t stream) { run_batch_norm(images, t, stream); };
    parts.check = [images](const auto& t, cudaStream_t stream) { verify_batch_norm(images, t, stream); };
    return parts;
  }
  parts.tensors.push_back({images.format, images.elements()});
  parts.tensors.push_back({Format::fp32, 2 * channels, Use::written});
  parts.prepare = [images](const auto& t, cudaStream_t stream) { run_batch_norm(images, t, stream); };  // for the sums
  parts.launch = [images](const auto& t, cudaStream_t stream) {
    batch_norm_backward(images.format, t[bn_x], t[bn_dy], floats(t[bn_scale]), floats(t[bn_sums]),
                        floats(t[bn_gradients]), t[bn_result], images.shape, stream);
  };
  parts.verify = [images, launch = parts.launch](const auto& t, cudaStream_t stream) {
    run_batch_norm(images, t, stream);  // the sums are those of the last set of operands
    launch(t, stream);
    verify_batch_norm_gradient(images, t, stream);
  };
  return parts;
}

StreamingParts pooling_parts(const OperatorSpec& spec) {
  const Pooling pooling = pooling_of(spec);
  const bool backward = is_backward(spec);
  StreamingParts parts;
  parts.tensors = {{pooling.format, pooling.inputs(), backward ? Use::kept : Use::read},
                   {pooling.format, pooling.outputs(), backward ? Use::kept : Use::written},
                   {Format::int64, pooling.maximum ? pooling.outputs() : 0, Use::own}};
  const auto forward = [pooling](const auto& t, cudaStream_t stream) {
    pooling_forward(pooling.format, t[pool_x], t[pool_y], indices_of(pooling, t), pooling.shape, stream);
  };
  if (!backward) {
    parts.launch = forward;
    parts.check = [pooling](const auto& t, cudaStream_t stream) {
      const auto expected = [&](std::int64_t output) { return pooled(pooling, t[pool_x], output, stream); };
      expect_numbers("pooling", pooling.format, t[pool_y], pooling.outputs(), expected, 1e-6, stream);
    };
    return parts;
  }
  parts.prepare = forward;  // for the places of the maxima; its results then serve as gradients
  parts.launch = [pooling](const auto& t, cudaStream_t stream) {
    pooling_backward(pooling.format, t[pool_y], indices_of(pooling, t), t[pool_x], pooling.shape, stream);
  };
  parts.check = [pooling](const auto& t, cudaStream_t stream) {
    const auto expected = [&](std::int64_t input) { return spread(pooling, t, input, stream); };
    expect_numbers("pooling gradient", pooling.format, t[pool_x], pooling.inputs(), expected, 1e-6, stream);
  };
  return parts;
}

}  // namespace foretrain::gpu
