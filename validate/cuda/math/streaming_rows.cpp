// Softmax, layer norm and cross-entropy: tensors of rows.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "validate/cuda/math/probe.hpp"
#include "validate/cuda/math/streaming.hpp"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

struct Rows {
  std::int64_t rows, columns;
  Format format;
  bool backward;
  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
};

Rows rows_of(const OperatorSpec& spec) {
  const Rows shape{spec.integer("rows"), spec.integer("columns"), streaming_format(spec), is_backward(spec)};
  if (shape.rows < 1 || shape.columns < 1) throw std::invalid_argument(spec.kind + ": a size below 1");
  if (shape.rows > 2147483647) throw GpuError(Fault::unsupported, "more rows than a grid has blocks");
  return shape;
}

using Numbers = std::vector<double>;
Numbers row_of(Format format, const void* tensor, std::int64_t row, std::int64_t columns, cudaStream_t stream) {
  return read_elements(format, tensor, row * columns, 1, columns, stream);
}

/// Sampled rows: compares every number of a result's row with what `expected` makes of that row's number.
void expect_rows(const char* what, const Rows& shape, Format format, const void* result,
                 const std::function<Numbers(std::int64_t)>& expected, double relative, cudaStream_t stream) {
  for (const std::int64_t row : samples_below(shape.rows, 4)) {
    const Numbers right = expected(row), got = row_of(format, result, row, shape.columns, stream);
    double largest = 0.0;
    for (const double number : right) largest = std::max(largest, std::abs(number));
    for (std::size_t i = 0; i < right.size(); ++i) {
      expect_close(std::string(what) + " row " + std::to_string(row) + " column " + std::to_string(i), got[i], right[i],
                   tolerance_of(format, right[i], relative) + relative * largest);
    }
  }
}

double sum_of(const Numbers& numbers) {
  double sum = 0.0;
  for (const double number : numbers) sum += number;
  return sum;
}

Numbers softmax_of(const Numbers& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  Numbers y;
  for (const double value : x) y.push_back(std::exp(value - largest));
  const double sum = sum_of(y);
  for (double& value : y) value /= sum;
  return y;
}

StreamingParts softmax_gradient(const Rows& shape) {
  StreamingParts parts;
  parts.tensors.assign(2, {shape.format, shape.elements()});
  parts.tensors.push_back({shape.format, shape.elements(), Use::written});
  parts.launch = [shape](const auto& t, cudaStream_t stream) {
    softmax_backward(shape.format, t[0], t[1], t[2], shape.rows, shape.columns, stream);
  };
  parts.check = [shape](const auto& t, cudaStream_t stream) {
    const auto expected = [&](std::int64_t row) {
      const Numbers y = row_of(shape.format, t[0], row, shape.columns, stream);
      Numbers dx = row_of(shape.format, t[1], row, shape.columns, stream);
      double product = 0.0;
      for (std::size_t i = 0; i < y.size(); ++i) product += y[i] * dx[i];
      for (std::size_t i = 0; i < y.size(); ++i) dx[i] = y[i] * (dx[i] - product);
      return dx;
    };
    expect_rows("softmax gradient", shape, shape.format, t[2], expected, 1e-4, stream);
  };
  return parts;
}

enum LayerNormTensor { ln_x, ln_scale, ln_shift, ln_mean, ln_inverse, ln_result, ln_dy, ln_dscale, ln_dshift };
std::vector<StreamingTensor> layer_norm_tensors(const Rows& shape) {
  std::vector<StreamingTensor> tensors = {
      {shape.format, shape.elements()},     {Format::fp32, shape.columns},
      {Format::fp32, shape.columns},        {Format::fp32, shape.rows, Use::own},
      {Format::fp32, shape.rows, Use::own}, {shape.format, shape.elements(), Use::written}};
  if (!shape.backward) return tensors;
  tensors.push_back({shape.format, shape.elements()});
  tensors.resize(tensors.size() + 2, {Format::fp32, shape.columns, Use::written});
  return tensors;
}

NormStatistics statistics_of(const StreamingOperands& t) {
  return {static_cast<float*>(t[ln_mean]), static_cast<float*>(t[ln_inverse])};
}

void run_layer_norm(const Rows& s, const StreamingOperands& t, cudaStream_t stream) {
  layer_norm_forward(s.format, t[ln_x], floats(t[ln_scale]), floats(t[ln_shift]), t[ln_result], statistics_of(t),
                     s.rows, s.columns, stream);
}

void verify_layer_norm(const Rows& s, const StreamingOperands& t, cudaStream_t stream) {
  const Numbers scale = row_of(Format::fp32, t[ln_scale], 0, s.columns, stream);
  const Numbers shift = row_of(Format::fp32, t[ln_shift], 0, s.columns, stream);
  const auto expected = [&](std::int64_t row) {
    Numbers x = row_of(s.format, t[ln_x], row, s.columns, stream);
    const auto count = static_cast<double>(x.size());
    const double mean = sum_of(x) / count;
    double squares = 0.0;
    for (const double value : x) squares += (value - mean) * (value - mean);
    const double inverse = 1.0 / std::sqrt(squares / count + 1e-5);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = (x[i] - mean) * inverse * scale[i] + shift[i];
    return x;
  };
  expect_rows("layer norm", s, s.format, t[ln_result], expected, 1e-4, stream);
}

void verify_layer_norm_gradient(const Rows& s, const StreamingOperands& t, cudaStream_t stream) {
  const Numbers scale = row_of(Format::fp32, t[ln_scale], 0, s.columns, stream);
  const auto expected = [&](std::int64_t row) {
    const double mean = read_element(Format::fp32, t[ln_mean], row, stream);
    const double inverse = read_element(Format::fp32, t[ln_inverse], row, stream);
    const Numbers x = row_of(s.format, t[ln_x], row, s.columns, stream);
    Numbers dx = row_of(s.format, t[ln_dy], row, s.columns, stream);
    double sum = 0.0, product = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      dx[i] *= scale[i];
      sum += dx[i];
      product += dx[i] * (x[i] - mean) * inverse;
    }
    const auto count = static_cast<double>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      dx[i] = inverse * (dx[i] - sum / count - (x[i] - mean) * inverse * product / count);
    }
    return dx;
  };
  expect_rows("layer norm gradient", s, s.format, t[ln_result], expected, 1e-4, stream);
  const Numbers mean = read_elements(Format::fp32, t[ln_mean], 0, 1, s.rows, stream);
  const Numbers inverse = read_elements(Format::fp32, t[ln_inverse], 0, 1, s.rows, stream);
  for (const std::int64_t column : samples_below(s.columns, 3)) {
    const Numbers x = read_elements(s.format, t[ln_x], column, s.columns, s.rows, stream);
    const Numbers dy = read_elements(s.format, t[ln_dy], column, s.columns, s.rows, stream);
    double product = 0.0, sum = 0.0, magnitudes = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      product += dy[i] * (x[i] - mean[i]) * inverse[i];
      sum += dy[i];
      magnitudes += std::abs(dy[i]) * (1.0 + std::abs((x[i] - mean[i]) * inverse[i]));
    }
    expect_close("gradient of scale", read_element(Format::fp32, t[ln_dscale], column, stream), product,
                 1e-5 * magnitudes + 1e-6);
    expect_close("gradient of shift", read_element(Format::fp32, t[ln_dshift], column, stream), sum,
                 1e-5 * magnitudes + 1e-6);
  }
}

StreamingParts cross_entropy_gradient(const Rows& shape) {
  enum { logarithms, labels, sparse, wide, gradient };
  const bool casts = shape.format != Format::fp32;
  StreamingParts parts;
  parts.kernels = casts ? 4 : 3;
  parts.tensors = {{Format::fp32, shape.elements()},
                   {Format::int64, shape.rows, Use::own},
                   {Format::fp32, shape.elements(), Use::written},
                   {Format::fp32, shape.elements(), Use::written},
                   {shape.format, casts ? shape.elements() : 1, Use::written}};
  parts.prepare = [shape](const auto& t, cudaStream_t stream) {
    fill_indices(static_cast<std::int64_t*>(t[labels]), shape.rows, shape.columns, 7, stream);
  };
  parts.launch = [shape](const auto& t, cudaStream_t stream) {
    cross_entropy_backward(shape.format, floats(t[logarithms]), static_cast<const std::int64_t*>(t[labels]),
                           floats(t[sparse]), floats(t[wide]), t[gradient], shape.rows, shape.columns, stream);
  };
  parts.check = [shape, casts](const auto& t, cudaStream_t stream) {
    const auto expected = [&](std::int64_t row) {
      Numbers dx = row_of(Format::fp32, t[logarithms], row, shape.columns, stream);
      const auto label = static_cast<std::size_t>(read_element(Format::int64, t[labels], row, stream));
      for (double& value : dx) value = std::exp(value) / static_cast<double>(shape.rows);
      dx[label] -= 1.0 / static_cast<double>(shape.rows);
      return dx;
    };
    expect_rows("cross-entropy gradient", shape, shape.format, t[casts ? gradient : wide], expected, 1e-4, stream);
  };
  return parts;
}

}  // namespace

StreamingParts softmax_parts(const OperatorSpec& spec) {
  const Rows shape = rows_of(spec);
  if (shape.backward) return softmax_gradient(shape);
  StreamingParts parts;
  parts.tensors = {{shape.format, shape.elements()}, {shape.format, shape.elements(), Use::written}};
  parts.launch = [shape](const auto& t, cudaStream_t stream) {
    softmax_forward(shape.format, t[0], t[1], shape.rows, shape.columns, stream);
  };
  parts.check = [shape](const auto& t, cudaStream_t stream) {
    const auto expected = [&](std::int64_t row) {
      return softmax_of(row_of(shape.format, t[0], row, shape.columns, stream));
    };
    expect_rows("softmax", shape, shape.format, t[1], expected, 1e-5, stream);
  };
  return parts;
}

StreamingParts layer_norm_parts(const OperatorSpec& spec) {
  const Rows shape = rows_of(spec);
  StreamingParts parts;
  parts.tensors = layer_norm_tensors(shape);
  parts.kernels = shape.backward ? 2 : 1;
  if (!shape.backward) {
    parts.launch = [shape](const auto& t, cudaStream_t stream) { run_layer_norm(shape, t, stream); };
    parts.check = [shape](const auto& t, cudaStream_t stream) { verify_layer_norm(shape, t, stream); };
    return parts;
  }
  parts.prepare = [shape](const auto& t, cudaStream_t stream) { run_layer_norm(shape, t, stream); };  // for statistics
  parts.launch = [shape](const auto& t, cudaStream_t stream) {
    layer_norm_backward(shape.format, t[ln_x], t[ln_dy], floats(t[ln_scale]), statistics_of(t), t[ln_result],
                        floats(t[ln_dscale]), floats(t[ln_dshift]), shape.rows, shape.columns, stream);
  };
  parts.check = [shape](const auto& t, cudaStream_t stream) { verify_layer_norm_gradient(shape, t, stream); };
  return parts;
}

StreamingParts cross_entropy_parts(const OperatorSpec& spec) {
  const Rows shape = rows_of(spec);
  if (shape.backward) return cross_entropy_gradient(shape);
  enum { logits, labels, logarithms, loss };
  StreamingParts parts;
  parts.kernels = 2;
  parts.tensors = {{shape.format, shape.elements()},
                   {Format::int64, shape.rows, Use::own},
                   {Format::fp32, shape.elements(), Use::written},
                   {Format::fp32, 1, Use::written}};
  parts.prepare = [shape](const auto& t, cudaStream_t stream) {
    fill_indices(static_cast<std::int64_t*>(t[labels]), shape.rows, shape.columns, 7, stream);
  };
  parts.launch = [shape](const auto& t, cudaStream_t stream) {
    cross_entropy_forward(shape.format, t[logits], static_cast<const std::int64_t*>(t[labels]), floats(t[logarithms]),
                          floats(t[loss]), shape.rows, shape.columns, stream);
  };
  parts.check = [shape](const auto& t, cudaStream_t stream) {
    const auto expected = [&](std::int64_t row) {
      Numbers y = softmax_of(row_of(shape.format, t[logits], row, shape.columns, stream));
      for (double& value : y) value = std::log(value);
      return y;
    };
    expect_rows("cross-entropy", shape, Format::fp32, t[logarithms], expected, 1e-5, stream);
  };
  return parts;
}

}  // namespace foretrain::gpu
