#include "validate/cuda/core/suite.hpp"

#include <utility>

#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

std::string bus_id_of(int device) {
  char text[32] = "";
  GPU_CHECK(cudaDeviceGetPCIBusId(text, sizeof(text), device));
  return text;
}

}  // namespace

SuiteRun::SuiteRun(std::string_view suite, bool quick, int device, double deadline, Journal& journal, const Nvml& nvml)
    : suite_(suite),
      quick_(quick),
      device_(device),
      deadline_(deadline),
      journal_(journal),
      nvml_(nvml),
      bus_id_(bus_id_of(device)) {}

StoppingRule SuiteRun::rule() const {
  if (quick_) return {.warm_up = 1, .least = 5, .most = 30, .target = 0.01, .budget = Seconds(0.1)};
  return {.warm_up = 2, .least = 9, .most = 200, .target = 0.003, .budget = Seconds(0.6)};
}

bool SuiteRun::point(Record record, const std::function<Sampled()>& measure) {
  return point(std::move(record), [&measure](Record&) { return measure(); });
}

bool SuiteRun::point(Record record, const std::function<Sampled(Record&)>& measure) {
  throw_if_interrupted();
  if (journal_.has(record.name)) return true;
  if (now() > deadline_) return false;
  record.suite = suite_;
  record.device = device_;
  try {
    record.values = measure(record).values;
    record.state = nvml_.state(bus_id_);
    record.status = RecordStatus::measured;
  } catch (const GpuError& error) {
    if (error.fault() == Fault::device_lost || error.fault() == Fault::unavailable || error.fault() == Fault::timeout) {
      record.status = RecordStatus::failed;
      record.note = error.what();
      journal_.append(record);
      throw;
    }
    const bool cannot = error.fault() == Fault::out_of_memory || error.fault() == Fault::unsupported;
    record.status = cannot ? RecordStatus::skipped : RecordStatus::failed;
    record.note = error.what();
  }
  journal_.append(record);
  return true;
}

void SuiteRun::skip(Record record, const std::string& why) {
  if (journal_.has(record.name)) return;
  record.suite = suite_;
  record.device = device_;
  record.status = RecordStatus::skipped;
  record.note = why;
  journal_.append(record);
}

const std::vector<Suite>& suites() {
  static const std::vector<Suite> table = {};
  return table;
}

}  // namespace foretrain::gpu
