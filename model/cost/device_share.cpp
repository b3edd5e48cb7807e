#include "model/cost/device_share.hpp"

#include <algorithm>
#include <array>

#include "model/cost/kernels.hpp"

namespace foretrain {

namespace {

/// Start and drain of the operator's kernels.
Seconds fixed_time(const Operator& op, const Calibration& calibration) {
  const bool streams = std::holds_alternative<Streaming>(op.work);
  const double us = streams ? calibration.streaming.kernel_us * op.kernels : calibration.matmul.fixed_us;
  return Seconds(us * 1e-6);
}

}  // namespace

DeviceShare device_share(const Operator& op, Seconds time, const Gpu& gpu, const Calibration& calibration) {
  if (!(time > Seconds(0.0))) return {0.0, 0.0};
  const double count = std::visit([](const auto& work) { return thread_blocks(work); }, op.work);
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
