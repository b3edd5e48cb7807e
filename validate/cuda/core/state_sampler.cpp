#include "validate/cuda/core/state_sampler.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "model/base/statistics.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

DeviceState summary_of(const std::vector<DeviceState>& samples) {
  std::vector<double> clocks;
  std::set<std::string> reasons;
  for (const DeviceState& sample : samples) {
    clocks.push_back(sample.sm_mhz);
    reasons.insert(sample.throttle.begin(), sample.throttle.end());
  }
  return {median(clocks), std::nullopt, {reasons.begin(), reasons.end()}};
}

}  // namespace

StateSampler::StateSampler(const Nvml& nvml, std::string bus_id)
    : nvml_(nvml), bus_id_(std::move(bus_id)), start_(now()), energy_at_start_(nvml.energy(bus_id_)) {
  if (!nvml_.state(bus_id_)) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any reported;
    while (!reported.wait_for(lock, stop, std::chrono::milliseconds(20), [&stop] { return stop.stop_requested(); })) {
      if (const auto state = nvml_.state(bus_id_)) samples_.push_back(*state);
    }
  });
}

std::optional<DeviceState> StateSampler::finish() {
  constexpr double least_counted_s = 0.2;  // counters of energy are brought up to date several times a second
  thread_ = {};                            // ends, and is waited for
  std::optional<DeviceState> state = samples_.empty() ? nvml_.state(bus_id_) : summary_of(samples_);
  const double seconds = now() - start_;
  if (state && energy_at_start_ && seconds >= least_counted_s) {
    if (const auto energy = nvml_.energy(bus_id_)) state->power_w = (*energy - *energy_at_start_) / seconds;
  }
  return state;
}

}  // namespace foretrain::gpu
