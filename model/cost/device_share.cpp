#include "model/cost/device_share.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

// Thread blocks as kernels of libraries cut them (assumption; device_share.hpp says how they are used): the smaller of
// the common tiles of products, FlashAttention-2's queries, a few loads of 16 bytes for each of a block's threads.
constexpr double block_rows = 64.0, block_columns = 64.0;  // of a product's result
constexpr double block_queries = 128.0;                    // of attention
constexpr double block_bytes = 32768.0;                    // of a memory-bound kernel

double product_blocks(double batch, double m, double n) {
  return batch * std::ceil(m / block_rows) * std::ceil(n / block_columns);
}

double blocks(const Matmul& w) { return product_blocks(number(w.batch), number(w.m), number(w.n)); }

double blocks(const Convolution& w) {
  const double outputs = number(w.n) * number(w.p) * number(w.q), inputs = number(w.n) * number(w.h) * number(w.w);
  const double out = number(w.k) / number(w.groups), in = number(w.c) / number(w.groups);
  switch (w.pass) {
    case ConvolutionPass::forward:
      return product_blocks(number(w.groups), outputs, out);
    case ConvolutionPass::data_gradient:
      return product_blocks(number(w.groups), inputs, in);
    case ConvolutionPass::weight_gradient:
      break;
  }
  return product_blocks(number(w.groups), out, in * number(w.r) * number(w.s));
}

double blocks(const Attention& w) {
  return number(w.batch) * number(w.heads) * std::ceil(number(w.query_length) / block_queries);
}

double blocks(const Streaming& w) { return std::ceil(std::max(w.read, w.written).value() / block_bytes); }

double blocks(const MemoryAccess& w) {
  return w.pattern == AccessPattern::dependent ? 1.0 : std::ceil(w.reads * w.element.value() / block_bytes);
}

/// Start and drain of the operator's kernels.
Seconds fixed_time(const Operator& op, const Calibration& calibration) {
  const bool streams = std::holds_alternative<Streaming>(op.work);
  const double us = streams ? calibration.streaming.kernel_us * op.kernels : calibration.matmul.fixed_us;
  return Seconds(us * 1e-6);
}

}  // namespace

DeviceShare device_share(const Operator& op, Seconds time, const Gpu& gpu, const Calibration& calibration) {
  if (!(time > Seconds(0.0))) return {0.0, 0.0};
  const double count = std::visit([](const auto& work) { return blocks(work); }, op.work);
  const double busy = std::max(0.0, (time - fixed_time(op, calibration)) / time);
  const double arithmetic = flops(op) / (gpu.matrix_rate(op.precision) * time);
  const BytesPerSecond bandwidth = gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency;
  DeviceShare share;
  share.multiprocessors = std::clamp(std::max(std::min(1.0, count / gpu.sms) * busy, arithmetic), 0.0, 1.0);
  share.bandwidth = std::clamp(minimum_traffic(op) / (bandwidth * time), 0.0, 1.0);
  return share;
}

std::vector<double> shared_speeds(std::span<const DeviceShare> kernels) {
  constexpr std::array<double DeviceShare::*, 2> resources = {&DeviceShare::multiprocessors, &DeviceShare::bandwidth};
  std::vector<double> speeds(kernels.size(), 1.0);
  std::vector<bool> fixed(kernels.size(), false);
  std::array<bool, resources.size()> used_up{};
  for (std::size_t round = 0; round < resources.size(); ++round) {
    // The speed at which the first of the resources left is used up by those that still rise.
    double level = 1.0;
    std::size_t scarce = resources.size();
    for (std::size_t r = 0; r < resources.size(); ++r) {
      if (used_up[r]) continue;
      double taken = 0.0, rising = 0.0;
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        (fixed[i] ? taken : rising) += kernels[i].*resources[r] * (fixed[i] ? speeds[i] : 1.0);
      }
      if (rising * level + taken <= 1.0) continue;
      level = std::max(0.0, 1.0 - taken) / rising;
      scarce = r;
    }
    if (scarce == resources.size()) break;
    used_up[scarce] = true;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (fixed[i] || !(kernels[i].*resources[scarce] > 0.0)) continue;
      speeds[i] = level;
      fixed[i] = true;
    }
  }
  return speeds;
}

}  // namespace foretrain
