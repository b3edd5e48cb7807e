#include "validate/cuda/core/state_sampler.hpp"

#include <chrono>
#include <set>
#include <utility>

#include "model/base/statistics.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::chrono::milliseconds interval(20);

constexpr double least_counted_s = 0.2;  // counters of energy are brought up to date several times a second

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
  std::optional<DeviceState> state = samples_.empty() ? nvml_.state(bus_id_) : summary_of(samples_);
  const double seconds = now() - start_;
  if (state && energy_at_start_ && seconds >= least_counted_s) {
    if (const auto energy = nvml_.energy(bus_id_)) state->power_w = (*energy - *energy_at_start_) / seconds;
  }
  return state;
}

}  // namespace foretrain::gpu
