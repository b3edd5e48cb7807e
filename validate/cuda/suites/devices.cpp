// The same work for seconds on every GPU of the machine, one after the other: by how much they differ. Parameter `gpu`
// is the device, `work` what it did: product (bound by power) or sum (by memory).
#include <string>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_runner.hpp"
#include "validate/cuda/suites/points.hpp"

namespace foretrain::gpu {

namespace {

struct DeviceWork {
  const char* name;
  OperatorSpec spec;
};

/// Only the second half counts, when clocks are those that power allows.
Sampled time_on(int device, OperatorSpec spec, bool quick) {
  const OnDevice here(device);
  warm_clocks(Seconds(quick ? 0.1 : 0.5));
  const Stream stream;
  OwnOperands memory(stream.get());
  const auto runner = make_runner(with_precision_of(std::move(spec), compute_capability()), {memory, 1});
  const StoppingRule rule{.warm_up = 1, .least = 10, .most = 200, .target = 0.0, .budget = Seconds(quick ? 0.3 : 2.0)};
  const Launch launch = [&](cudaStream_t on, int turn) { runner->launch(on, turn); };
  Sampled sampled = time_stream(stream, launch, rule, Seconds(20e-3), runner->kernels());
  const auto half = static_cast<std::ptrdiff_t>(sampled.values.size() / 2);
  sampled.values.erase(sampled.values.begin(), sampled.values.begin() + half);
  return sampled;
}

}  // namespace

void run_devices(SuiteRun& run) {
  const DeviceWork works[] = {
      {"product", {"matmul", {{"m", "8192"}, {"n", "8192"}, {"k", "8192"}, {"precision", "bf16"}}}},
      {"sum", {"elementwise", {{"elements", "268435456"}, {"inputs", "2"}, {"precision", "fp32"}}}}};
  for (const DeviceWork& work : works) {
    for (int device = 0; device < visible_devices(); ++device) {
      const Record record =
          plain_point("device_speed", {{"work", work.name}, {"gpu", std::to_string(device)}, {"timing", "stream"}});
      if (!run.point(record, [&] { return time_on(device, work.spec, run.quick()); })) return;
    }
  }
}

}  // namespace foretrain::gpu
