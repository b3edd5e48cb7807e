// One thread does everything. It dispatches an operator, computes it, and goes on, so that the parts add up, time =
// (kernels · dispatch + work) ÷ share of the core Products and convolutions: operations over the rate that the
// library's blocked kernels reach. OpenBLAS copies its operands block by block into the order in which its kernel reads
// them (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008). That costs the bytes of
// operands and result over the copy rate. oneDNN reorders a convolution's tensors before and after (oneDNN developer
// guide, "Understanding memory formats"; Debian's PyTorch keeps none of them in its layout). Its kernels compute whole
// vectors of channels. Convolutions of 1 x 1 with stride 1 are products, image by image (PyTorch 1.13,
// aten/src/ATen/native/Convolution.cpp: select_conv_backend).
//
// Loops: bytes over the slower of what memory carries (the last cache where all the operator's tensors fit there) and
// what the loop itself does: PyTorch's pooling, random numbers and exponentials are slower than any memory.
//
// Results of 32 MiB and more are pages that the system gives anew each time, and clears (mallopt(3),
// M_MMAP_THRESHOLD): their bytes over the rate of that, beside the rest. A tensor counts, so that what an operator of
// several kernels writes is divided among them; and the blocked result of a convolution, before it is reordered
// (LeNet's first one on 512 images: 10,817 page faults a step are 512 x 32 x 26 x 26 numbers, 20 channels padded to
// 32). Assumptions: fp32; what is smaller stays in the heap (M_TRIM_THRESHOLD is as large).
#include "model/cost/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

struct ProcessorWork {
  Seconds time;
  Bound bound;
};

BytesPerSecond memory_rate(Bytes tensors, const Gpu& gpu) {
  return tensors <= gpu.l2_cache ? gpu.l2_bandwidth : gpu.memory_bandwidth;
}

/// Rate of the loop itself: frameworks have one for each operator.
BytesPerSecond loop_rate(const Operator& op, const Streaming& work, const Processor& processor) {
  using enum OperatorRole;
  switch (op.role) {
    case shortening:
      return processor.conversion_rate;
    case average_pooling:
      return processor.pooling_rate;
    case softmax:
    case loss:
    case activation:
      return processor.transcendental_rate;
    case dropout:
      if (!op.backward) return processor.random_rate;  // backward, the mask is there
      break;
    case max_pooling:
      if (!op.backward) return processor.pooling_rate;  // backward, indices are
      break;
    default:
      break;
  }
  if (work.kind != StreamingKind::reduction) return BytesPerSecond::infinity();
  return op.backward ? processor.norm_gradient_rate : processor.norm_rate;
}

ProcessorWork work_time(const Operator& op, const Streaming& work, const Gpu& gpu) {
  const Bytes bytes = work.read + work.written;
  const BytesPerSecond loop = loop_rate(op, work, *gpu.processor), memory = memory_rate(bytes, gpu);
  return {bytes / std::min(loop, memory), loop < memory ? Bound::compute : Bound::memory};
}

Seconds product_time(Flops operations, Bytes packed, const Processor& processor) {
  return operations / processor.product_rate + packed / processor.packing_rate;
}

ProcessorWork work_time(const Operator& /*op*/, const Matmul& work, const Gpu& gpu) {
  return {product_time(work.operations(), work.traffic(bytes_per_element(Precision::fp32)), *gpu.processor),
          Bound::compute};
}

/// Channels are padded to whole vectors (oneDNN developer guide, "Understanding memory formats").
double padding_of(double channels) {
  constexpr double lanes = 16.0;  // AVX-512, fp32
  return std::ceil(channels / lanes) * lanes / channels;
}

/// Operations of a blocked kernel over those of the mathematics; kernels for images do not pad their channels.
double padding(const Convolution& work) {
  constexpr double image_channels = 3.0;
  const double inputs = number(work.c) / number(work.groups), outputs = number(work.k) / number(work.groups);
  return padding_of(outputs) * (inputs > image_channels ? padding_of(inputs) : 1.0);
}

bool is_product(const Convolution& work) { return work.r == 1 && work.s == 1 && work.stride == 1; }

ProcessorWork work_time(const Operator& op, const Convolution& work, const Gpu& gpu) {
  const Processor& processor = *gpu.processor;
  if (is_product(work)) {
    return {product_time(work.operations(), work.traffic(bytes_per_element(op.precision)), processor), Bound::compute};
  }
  const bool forward = work.pass == ConvolutionPass::forward;
  const FlopsPerSecond rate = forward ? processor.convolution_rate : processor.convolution_gradient_rate;
  const Seconds computed = work.operations() * padding(work) / rate;
  const Seconds reordered = work.traffic(bytes_per_element(op.precision)) / processor.reorder_rate;
  return {computed + reordered, computed >= reordered ? Bound::compute : Bound::memory};
}

/// Products and passes over the scores, whatever is masked: softmax (forward it reads and writes them, backward it
/// reads two and writes one), and dropout by a mask of numbers.
ProcessorWork work_time(const Operator& /*op*/, const Attention& work, const Gpu& gpu) {
  const Processor& processor = *gpu.processor;
  const double scored = number(work.batch) * number(work.heads) * number(work.query_length) * number(work.key_length);
  const Bytes pass = scored * bytes_per_element(Precision::fp32);
  const double products = work.backward ? 4.0 : 2.0, passes = work.backward ? 3.0 : 2.0;
  const double rows = number(work.batch) * number(work.heads) * (number(work.query_length) + number(work.key_length));
  const Bytes packed = pass + rows * number(work.head_dim) * bytes_per_element(Precision::fp32);
  Seconds time = product_time(Flops(2.0 * products * scored * number(work.head_dim)), packed * products, processor);
  time += pass * passes / processor.transcendental_rate;
  if (work.dropout) time += pass * passes / (work.backward ? memory_rate(pass, gpu) : processor.random_rate);
  return {time, Bound::compute};
}

ProcessorWork work_time(const Operator& op, const MemoryAccess& /*work*/, const Gpu& gpu) {
  const Bytes bytes = minimum_traffic(op);
  return {bytes / memory_rate(bytes, gpu), Bound::memory};
}

/// For a result that the system has to make room for each time; the optimizer writes into what is there.
Seconds fresh_pages(const Operator& op, const Processor& processor) {
  constexpr Bytes mapped = 32.0_MiB;  // by itself
  const Streaming* const loop = std::get_if<Streaming>(&op.work);
  if (loop && loop->kind == StreamingKind::optimizer) return Seconds(0.0);
  Bytes result = std::visit([&op](const auto& work) { return work.result(bytes_per_element(op.precision)); }, op.work);
  const Convolution* const convolution = std::get_if<Convolution>(&op.work);
  const bool blocked = convolution && convolution->pass == ConvolutionPass::forward && !is_product(*convolution);
  if (blocked) result *= padding_of(number(convolution->k) / number(convolution->groups));
  const double tensors = loop ? std::max(1.0, number(op.kernels)) : 1.0;
  return result / tensors >= mapped ? result / processor.fresh_rate : Seconds(0.0);
}

}  // namespace

KernelTime processor_time(const Operator& op, const Gpu& gpu) {
  const Processor& processor = *gpu.processor;
  const ProcessorWork work = std::visit([&](const auto& kind) { return work_time(op, kind, gpu); }, op.work);
  const Seconds dispatch = processor.dispatch * number(op.kernels);
  return {(dispatch + work.time + fresh_pages(op, processor)) / processor.share,
          dispatch > work.time ? Bound::latency : work.bound};
}

}  // namespace foretrain
