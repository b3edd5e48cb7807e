// Embeddings, optimizers and gradient clipping.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "validate/cuda/math/probe.hpp"
#include "validate/cuda/math/streaming.hpp"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

/// The parameters of one of `tensors` parts as equal as can be; parts begin at multiples of 16 numbers.
struct Part {
  std::int64_t first, count;
};
std::vector<Part> parts_of(std::int64_t parameters, std::int64_t tensors) {
  std::vector<Part> parts;
  const std::int64_t each = ((parameters + tensors - 1) / tensors + 15) / 16 * 16;
  for (std::int64_t first = 0; first < parameters; first += each) {
    parts.push_back({first, std::min(each, parameters - first)});
  }
  return parts;
}

UpdateRule rule_of(const OperatorSpec& spec) {
  const std::string word = spec.text_or("algorithm", "adamw");
  if (word == "sgd") return UpdateRule::sgd;
  if (word == "momentum") return UpdateRule::momentum;
  if (word == "adam") return UpdateRule::adam;
  if (word == "adamw") return UpdateRule::adamw;
  throw std::invalid_argument("optimizer: algorithm: unknown word \"" + word + "\"");
}

/// Kernels of one tensor's update without fusion.
int separate_kernels(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::sgd:
      return 1;
    case UpdateRule::momentum:
      return 3;
    case UpdateRule::adam:
      return 7;
    case UpdateRule::adamw:
      break;
  }
  return 8;
}

struct Update {
  UpdateRule rule;
  Format copy;
  bool fused;
  std::vector<Part> parts;
  std::int64_t parameters;
};

enum UpdateTensor { weights, gradients, first_state, second_state, short_copy, scratch };

UpdateOperands operands_of(const Update& update, const StreamingOperands& t, const Part& part) {
  UpdateOperands operands{};
  operands.weights = floats(t[weights]) + part.first;
  operands.gradients = floats(t[gradients]) + part.first;
  operands.first = floats(t[first_state]) + part.first;
  operands.second = floats(t[second_state]) + part.first;
  operands.scratch = floats(t[scratch]) + part.first;
  if (update.copy != Format::fp32) {
    operands.copy = static_cast<char*>(t[short_copy]) + part.first * static_cast<std::int64_t>(size_of(update.copy));
  }
  operands.count = part.count;
  return operands;
}

void run_update(const Update& update, const StreamingOperands& t, cudaStream_t stream) {
  if (update.fused) {
    fused_update(update.rule, update.copy, operands_of(update, t, {0, update.parameters}), stream);
    return;
  }
  for (const Part& part : update.parts) separate_update(update.rule, update.copy, operands_of(update, t, part), stream);
}

/// The weight after one update, from what was there before it.
double updated_weight(UpdateRule rule, double weight, double gradient, double first, double second) {
  const UpdateCoefficients c;
  if (rule == UpdateRule::sgd) return weight - c.rate * gradient;
  if (rule == UpdateRule::momentum) return weight - c.rate * (c.first_decay * first + gradient);
  if (rule == UpdateRule::adamw) weight *= 1.0 - double{c.rate} * c.weight_decay;
  first += (1.0 - c.first_decay) * (gradient - first);
  second = c.second_decay * second + (1.0 - c.second_decay) * gradient * gradient;
  return weight - c.rate * first / (std::sqrt(second) + c.epsilon);
}

void verify_update(const Update& update, const StreamingOperands& t, cudaStream_t stream) {
  const auto read = [&](UpdateTensor which, std::int64_t i) { return read_element(Format::fp32, t[which], i, stream); };
  const bool first = update.rule != UpdateRule::sgd;
  const bool second = update.rule == UpdateRule::adam || update.rule == UpdateRule::adamw;
  const auto samples = samples_below(update.parameters, 8);
  std::vector<double> expected;
  for (const std::int64_t i : samples) {
    expected.push_back(updated_weight(update.rule, read(weights, i), read(gradients, i),
                                      first ? read(first_state, i) : 0.0, second ? read(second_state, i) : 0.0));
  }
  run_update(update, t, stream);
  for (std::size_t k = 0; k < samples.size(); ++k) {
    // A quotient of small numbers may lose more than the weight itself.
    expect_close("optimizer", read(weights, samples[k]), expected[k], 1e-5 * std::abs(expected[k]) + 2e-5);
    if (update.copy == Format::fp32) continue;
    expect_close("copy of the weights", read_element(update.copy, t[short_copy], samples[k], stream), expected[k],
                 tolerance_of(update.copy, expected[k], 1e-5) + 2e-5);
  }
}

struct Clipping {
  Format format;
  bool fused;
  std::vector<Part> parts;
  std::int64_t parameters;
};

enum ClippingTensor { clipped, chunk_sums, total, factor };

void run_clipping(const Clipping& clipping, const StreamingOperands& t, cudaStream_t stream) {
  constexpr float largest = 1.0F;
  const auto size = static_cast<std::int64_t>(size_of(clipping.format));
  const auto start = [&](const Part& part) { return static_cast<char*>(t[clipped]) + part.first * size; };
  const std::vector<Part> whole = {{0, clipping.parameters}};
  const std::vector<Part>& parts = clipping.fused ? whole : clipping.parts;
  float* sums = floats(t[chunk_sums]);
  for (const Part& part : parts) {
    norm_of_chunks(clipping.format, start(part), part.count, sums, stream);
    sums += norm_chunks();
  }
  clipping_factor(floats(t[chunk_sums]), sums - floats(t[chunk_sums]), floats(t[total]), floats(t[factor]), largest,
                  stream);
  for (const Part& part : parts) scale_by(clipping.format, start(part), part.count, floats(t[factor]), stream);
}

void verify_clipping(const Clipping& clipping, const StreamingOperands& t, cudaStream_t stream) {
  const auto samples = samples_below(clipping.parameters, 8);
  std::vector<double> before;
  for (const std::int64_t i : samples) before.push_back(read_element(clipping.format, t[clipped], i, stream));
  // The norm of all numbers from as many of them as can be looked at; it is exact where that is all.
  constexpr std::int64_t most = 1 << 22;
  const std::int64_t step = (clipping.parameters + most - 1) / most;
  const auto looked_at =
      read_elements(clipping.format, t[clipped], 0, step, (clipping.parameters + step - 1) / step, stream);
  double squares = 0.0;
  for (const double value : looked_at) squares += value * value;
  squares *= static_cast<double>(clipping.parameters) / static_cast<double>(looked_at.size());
  run_clipping(clipping, t, stream);
  const double by = read_element(Format::fp32, t[factor], 0, stream);
  const double relative = step == 1 ? 1e-4 : 1e-2;
  const double right = std::min(1.0, 1.0 / (std::sqrt(squares) + 1e-6));
  expect_close("factor of gradient clipping", by, right, relative * right);
  for (std::size_t k = 0; k < samples.size(); ++k) {
    expect_close("clipped gradient", read_element(clipping.format, t[clipped], samples[k], stream), before[k] * by,
                 tolerance_of(clipping.format, before[k] * by, 1e-6));
  }
}

}  // namespace

StreamingParts optimizer_parts(const OperatorSpec& spec) {
  const std::int64_t parameters = spec.integer("parameters"), tensors = spec.integer_or("tensors", 1);
  const std::string precision = spec.text_or("precision", "fp32");
  // fp8 training keeps bf16 weights beside the fp32 ones.
  const Format copy = format_of(precision == "fp8" ? "bf16" : precision);
  const Update update{rule_of(spec), copy, spec.text_or("fused", "true") == "true", parts_of(parameters, tensors),
                      parameters};
  const bool first = update.rule != UpdateRule::sgd;
  const bool second = update.rule == UpdateRule::adam || update.rule == UpdateRule::adamw;
  StreamingParts parts;
  parts.tensors = {{Format::fp32, parameters, Use::kept},
                   {Format::fp32, parameters},
                   {Format::fp32, first ? parameters : 0, Use::kept},
                   {Format::fp32, second ? parameters : 0, Use::kept},
                   {copy, copy == Format::fp32 ? 0 : parameters, Use::written},
                   {Format::fp32, second && !update.fused ? parameters : 0, Use::written}};
  parts.kernels = update.fused ? 1
                               : static_cast<int>(update.parts.size()) *
                                     (separate_kernels(update.rule) + (copy == Format::fp32 ? 0 : 1));
  parts.prepare = [parameters, second](const auto& t, cudaStream_t stream) {
    // A mean of squares is not below zero; updates fill it.
    if (second) GPU_CHECK(cudaMemsetAsync(t[second_state], 0, to_size(parameters) * sizeof(float), stream));
  };
  parts.launch = [update](const auto& t, cudaStream_t stream) { run_update(update, t, stream); };
  parts.verify = [update](const auto& t, cudaStream_t stream) { verify_update(update, t, stream); };
  return parts;
}

StreamingParts gradient_clipping_parts(const OperatorSpec& spec) {
  const std::int64_t parameters = spec.integer("parameters"), tensors = spec.integer_or("tensors", 1);
  const std::string precision = spec.text_or("precision", "fp32");
  const Clipping clipping{format_of(precision == "fp8" ? "bf16" : precision), spec.text_or("fused", "true") == "true",
                          parts_of(parameters, tensors), parameters};
  const auto chunks = static_cast<std::int64_t>(clipping.fused ? 1 : clipping.parts.size()) * norm_chunks();
  StreamingParts parts;
  parts.tensors = {{clipping.format, parameters, Use::kept},
                   {Format::fp32, chunks, Use::written},
                   {Format::fp32, 1, Use::written},
                   {Format::fp32, 1, Use::written}};
  parts.kernels = clipping.fused ? 4 : 2 * static_cast<int>(clipping.parts.size()) + 2;
  parts.launch = [clipping](const auto& t, cudaStream_t stream) { run_clipping(clipping, t, stream); };
  parts.verify = [clipping](const auto& t, cudaStream_t stream) { verify_clipping(clipping, t, stream); };
  return parts;
}

StreamingParts embedding_parts(const OperatorSpec& spec) {
  const std::int64_t count = spec.integer("tokens"), width = spec.integer("width");
  const std::int64_t vocabulary = spec.integer("vocabulary");
  const Format format = streaming_format(spec);
  const bool backward = is_backward(spec);
  enum { table, tokens, rows };
  StreamingParts parts;
  parts.kernels = backward ? 2 : 1;
  parts.tensors = {{format, vocabulary * width, backward ? Use::written : Use::read},
                   {Format::int64, count, Use::own},
                   {format, count * width, backward ? Use::read : Use::written}};
  parts.prepare = [count, vocabulary](const auto& t, cudaStream_t stream) {
    fill_indices(static_cast<std::int64_t*>(t[tokens]), count, vocabulary, 3, stream);
  };
  parts.launch = [=](const auto& t, cudaStream_t stream) {
    const auto* numbers = static_cast<const std::int64_t*>(t[tokens]);
    if (backward) {
      embedding_backward(format, t[rows], numbers, t[table], count, width, vocabulary, stream);
    } else {
      embedding_forward(format, t[table], numbers, t[rows], count, width, stream);
    }
  };
  parts.check = [=](const auto& t, cudaStream_t stream) {
    const auto numbers = read_elements(Format::int64, t[tokens], 0, 1, count, stream);
    if (!backward) {
      const auto expected = [&](std::int64_t i) {
        const auto token = static_cast<std::int64_t>(numbers[to_size(i / width)]);
        return read_element(format, t[table], token * width + i % width, stream);
      };
      expect_numbers("embedding", format, t[rows], count * width, expected, 0.0, stream);
      return;
    }
    for (const std::int64_t sample : samples_below(count, 4)) {
      const auto token = static_cast<std::int64_t>(numbers[to_size(sample)]);
      double sum = 0.0, magnitudes = 0.0;
      for (std::int64_t i = 0; i < count; ++i) {
        if (static_cast<std::int64_t>(numbers[to_size(i)]) != token) continue;
        const double gradient = read_element(format, t[rows], i * width + width - 1, stream);
        sum += gradient;
        magnitudes += std::abs(gradient);
      }
      // Each addition into the table rounds to its format.
      expect_close("embedding gradient", read_element(format, t[table], token * width + width - 1, stream), sum,
                   8.0 * rounding_of(format) * magnitudes + 1e-7);
    }
  };
  return parts;
}

}  // namespace foretrain::gpu
