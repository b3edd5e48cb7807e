#include "validate/cuda/math/streaming.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "validate/cuda/math/probe.hpp"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

std::size_t bytes_of(const StreamingTensor& tensor) {
  // Rounded up, so that a kernel's last sixteen bytes lie inside.
  return (to_size(tensor.elements) * size_of(tensor.format) + 15) / 16 * 16;
}

/// The sum over the inputs of their number `i`.
double sum_of_inputs(Format format, const StreamingOperands& operands, int inputs, std::int64_t i,
                     cudaStream_t stream) {
  double sum = 0.0;
  for (int k = 0; k < inputs; ++k) sum += read_element(format, operands[to_size(k)], i, stream);
  return sum;
}

struct ElementwiseCounts {
  std::int64_t elements;
  int inputs, outputs;
  Format format;
};

ElementwiseCounts counts_of(const OperatorSpec& spec) {
  const std::int64_t inputs = spec.integer_or("inputs", 1), outputs = spec.integer_or("outputs", 1);
  if (inputs > most_operands || outputs > most_operands) {
    throw GpuError(Fault::unsupported, "own kernels take at most 8 inputs and 8 outputs");
  }
  return {spec.integer("elements"), static_cast<int>(inputs), static_cast<int>(outputs), streaming_format(spec)};
}

std::vector<StreamingTensor> tensors_of(const ElementwiseCounts& counts) {
  std::vector<StreamingTensor> tensors(to_size(counts.inputs), {counts.format, counts.elements});
  tensors.resize(to_size(counts.inputs + counts.outputs), {counts.format, counts.elements, Use::written});
  return tensors;
}

ElementwiseOperands operands_of(const ElementwiseCounts& counts, const StreamingOperands& operands) {
  ElementwiseOperands kernel;
  kernel.input_count = counts.inputs;
  kernel.output_count = counts.outputs;
  for (int i = 0; i < counts.inputs; ++i) kernel.inputs[i] = operands[to_size(i)];
  for (int i = 0; i < counts.outputs; ++i) kernel.outputs[i] = operands[to_size(counts.inputs + i)];
  return kernel;
}

void verify_outputs(const ElementwiseCounts& counts, const StreamingOperands& operands, cudaStream_t stream) {
  for (int j = 0; j < counts.outputs; ++j) {
    const auto expected = [&](std::int64_t i) {
      return 0.5 * (j + 1) * sum_of_inputs(counts.format, operands, counts.inputs, i, stream);
    };
    expect_numbers("elementwise", counts.format, operands[to_size(counts.inputs + j)], counts.elements, expected, 1e-6,
                   stream);
  }
}

}  // namespace

std::size_t to_size(std::int64_t number) { return static_cast<std::size_t>(number); }

StreamingRunner::StreamingRunner(StreamingParts parts, const RunnerSetting& setting) : parts_(std::move(parts)) {
  for (const StreamingTensor& tensor : parts_.tensors) {
    if (tensor.elements < 0) throw std::invalid_argument("an operator with a size below 0");
  }
  setting.memory.begin_operator();
  const Stream stream;
  for (const StreamingTensor& tensor : parts_.tensors) {
    if (tensor.use != Use::own) continue;
    const DeviceBuffer& buffer = own_.emplace_back(bytes_of(tensor));
    buffer.fill(tensor.format, stream.get());
  }
  const int sets = gpu::operand_sets(setting.rotation, bytes());
  for (int set = 0; set < sets; ++set) {
    StreamingOperands operands;
    std::size_t owned = 0;
    for (const StreamingTensor& tensor : parts_.tensors) {
      operands.push_back(tensor.use == Use::own ? own_[owned++].data()
                                                : setting.memory.take(bytes_of(tensor), tensor.format, tensor.use));
    }
    sets_.push_back(std::move(operands));
  }
  if (!parts_.prepare) {
    stream.synchronize();
    return;
  }
  GPU_CHECK(cudaDeviceSynchronize());  // the memory may fill on a stream of its own
  for (const StreamingOperands& operands : sets_) parts_.prepare(operands, stream.get());
  stream.synchronize();
}

void StreamingRunner::launch(cudaStream_t stream, int turn) {
  parts_.launch(sets_[to_size(turn) % sets_.size()], stream);
}

void StreamingRunner::verify(cudaStream_t stream) {
  if (parts_.verify) return parts_.verify(sets_.front(), stream);
  parts_.launch(sets_.front(), stream);
  if (parts_.check) parts_.check(sets_.front(), stream);
}

std::size_t StreamingRunner::bytes() const {
  std::size_t sum = 0;
  for (const StreamingTensor& tensor : parts_.tensors) sum += bytes_of(tensor);
  return sum;
}

double tolerance_of(Format format, double number, double relative) {
  return std::abs(number) * (relative + 2.0 * rounding_of(format)) + (format == Format::fp16 ? 1e-7 : 1e-30);
}

void expect_numbers(const std::string& what, Format format, const void* result, std::int64_t count,
                    const std::function<double(std::int64_t)>& expected, double relative, cudaStream_t stream) {
  if (count == 0) return;
  for (const std::int64_t i : samples_below(count, 8)) {
    const double right = expected(i);
    expect_close(what + " number " + std::to_string(i), read_element(format, result, i, stream), right,
                 tolerance_of(format, right, relative) + relative);
  }
}

Format streaming_format(const OperatorSpec& spec) {
  const Format format = format_of(spec.text_or("precision", "fp32"));
  if (format != Format::fp32 && format != Format::fp16 && format != Format::bf16) {
    throw GpuError(Fault::unsupported, "own kernels exist for fp32, tf32, fp16 and bf16");
  }
  return format;
}

bool is_backward(const OperatorSpec& spec) {
  const std::string pass = spec.text_or("pass", "forward");
  if (pass != "forward" && pass != "backward") throw std::invalid_argument(spec.kind + ": pass: " + pass);
  return pass == "backward";
}

StreamingParts elementwise_parts(const OperatorSpec& spec) {
  const ElementwiseCounts counts = counts_of(spec);
  StreamingParts parts;
  parts.tensors = tensors_of(counts);
  parts.launch = [counts](const auto& operands, cudaStream_t stream) {
    elementwise(counts.format, operands_of(counts, operands), counts.elements, stream);
  };
  parts.check = [counts](const auto& operands, cudaStream_t stream) { verify_outputs(counts, operands, stream); };
  return parts;
}

StreamingParts reduction_parts(const OperatorSpec& spec) {
  const ElementwiseCounts counts = counts_of(spec);
  StreamingParts parts;
  parts.tensors = tensors_of(counts);
  const std::size_t result = parts.tensors.size();
  parts.tensors.push_back({Format::fp32, 1, Use::own});
  parts.tensors.push_back({Format::fp32, reduction_scratch(), Use::own});
  parts.prepare = [result](const auto& operands, cudaStream_t stream) {
    GPU_CHECK(cudaMemsetAsync(operands[result + 1], 0, to_size(reduction_scratch()) * sizeof(float), stream));
  };
  parts.launch = [counts, result](const auto& operands, cudaStream_t stream) {
    reduction(counts.format, operands_of(counts, operands), counts.elements, floats(operands[result]),
              floats(operands[result + 1]), stream);
  };
  parts.check = [counts, result](const auto& operands, cudaStream_t stream) {
    verify_outputs(counts, operands, stream);
    // Of large tensors the first part alone is added up here, after a launch over that part.
    ElementwiseCounts part = counts;
    part.elements = std::min<std::int64_t>(counts.elements, 1 << 20);
    reduction(part.format, operands_of(part, operands), part.elements, floats(operands[result]),
              floats(operands[result + 1]), stream);
    double sum = 0.0, magnitudes = 0.0;
    for (int k = 0; k < part.inputs; ++k) {
      for (const double value : read_elements(part.format, operands[to_size(k)], 0, 1, part.elements, stream)) {
        sum += value;
        magnitudes += std::abs(value);
      }
    }
    expect_close("reduction", read_element(Format::fp32, operands[result], 0, stream), sum, 1e-5 * magnitudes + 1e-6);
  };
  return parts;
}

StreamingParts copy_parts(const OperatorSpec& spec) {
  const std::int64_t size = spec.size("size");
  StreamingParts parts;
  parts.tensors = {{Format::int8, size}, {Format::int8, size, Use::written}};
  parts.launch = [size](const auto& operands, cudaStream_t stream) {
    GPU_CHECK(cudaMemcpyAsync(operands[1], operands[0], to_size(size), cudaMemcpyDeviceToDevice, stream));
  };
  parts.check = [size](const auto& operands, cudaStream_t stream) {
    const auto expected = [&](std::int64_t i) { return read_element(Format::int8, operands[0], i, stream); };
    expect_numbers("copy", Format::int8, operands[1], size, expected, 0.0, stream);
  };
  return parts;
}

// Of a streaming operator of a step the model knows the bytes and the pattern: each pattern has a kernel of its own
// kind. Elementwise operators and optimizers are elementwise kernels where their bytes are those of whole tensors.
StreamingParts traffic_parts(const OperatorSpec& spec) {
  const std::int64_t read = std::llround(spec.number_or("read", 0.0));
  const std::int64_t written = std::llround(spec.number_or("written", 0.0));
  const std::string pattern = spec.text_or("pattern", "");
  std::string precision = spec.text_or("precision", "fp32");
  if (precision == "fp8") precision = half_precision();
  const Format format = format_of(precision);
  const bool typed = format == Format::fp32 || format == Format::fp16 || format == Format::bf16;
  const auto width = static_cast<std::int64_t>(size_of(format));
  const std::int64_t one = read > 0 ? std::min(read, written) : written;  // bytes of a tensor
  const bool whole = one > 0 && read % one == 0 && written % one == 0 && one % width == 0 &&
                     std::max(read, written) / one <= most_operands;
  if (typed && whole && (pattern == "elementwise" || pattern == "optimizer")) {
    OperatorSpec tensors{"elementwise", {{"elements", std::to_string(one / width)}, {"precision", precision}}};
    tensors.fields["inputs"] = std::to_string(read / one);
    tensors.fields["outputs"] = std::to_string(written / one);
    StreamingParts parts = elementwise_parts(tensors);
    // Of two inputs half the sum, which is no larger than they are: so may be what comes out of a chain of them.
    if (pattern == "elementwise" && read > 0 && read / one <= 2) parts.tensors.front().use = Use::handed;
    return parts;
  }
  StreamingParts parts;
  if (typed && pattern == "reduction") {
    parts.tensors = {{format, read / width, Use::handed}, {format, written / width, Use::written}};
    parts.launch = [=](const auto& operands, cudaStream_t stream) {
      row_traffic(format, operands[0], read, operands[1], written, stream);
    };
    return parts;
  }
  const Use first = pattern == "elementwise" ? Use::handed : Use::read;
  parts.tensors = {{Format::int8, read, first}, {Format::int8, written, Use::written}};
  parts.launch = [=, gathered = pattern == "gather"](const auto& operands, cudaStream_t stream) {
    traffic(operands[0], read, operands[1], written, gathered, stream);
  };
  return parts;
}

}  // namespace foretrain::gpu
