#include "validate/cuda/core/state_sampler.hpp"

#include <chrono>
#include <set>
#include <utility>

#include "model/base/statistics.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::chrono::milliseconds interval(20);

DeviceState summary_of(const std::vector<DeviceState>& samples) {
  const auto middle = [&](double DeviceState::*field) {
    std::vector<double> values;
    for (const DeviceState& sample : samples) values.push_back(sample.*field);
    return median(values);
  };
  std::set<std::string> reasons;
  for (const DeviceState& sample : samples) reasons.insert(sample.throttle.begin(), sample.throttle.end());
  return DeviceState{middle(&DeviceState::sm_mhz),
                     middle(&DeviceState::memory_mhz),
                     middle(&DeviceState::power_w),
                     middle(&DeviceState::temperature_c),
                     {reasons.begin(), reasons.end()}};
}

}  // namespace

StateSampler::StateSampler(const Nvml& nvml, std::string bus_id) : nvml_(nvml), bus_id_(std::move(bus_id)) {
  if (nvml_.available()) thread_ = std::thread([this] { sample_until_told(); });
}

StateSampler::~StateSampler() { stop(); }

void StateSampler::sample_until_told() {
  std::unique_lock lock(mutex_);
  while (!told_.wait_for(lock, interval, [this] { return done_; })) {
    if (const auto state = nvml_.state(bus_id_)) samples_.push_back(*state);
  }
}

void StateSampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  told_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::optional<DeviceState> StateSampler::finish() {
  stop();
  return samples_.empty() ? nvml_.state(bus_id_) : summary_of(samples_);
}

}  // namespace foretrain::gpu
