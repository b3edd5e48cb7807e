// The same work for seconds on every GPU of the machine, one after the other: by how much they differ. Parameter `gpu`
// is the device, `work` what it did: product (bound by power) or sum (by memory).
#include <string>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_runner.hpp"
#include "validate/cuda/suites/points.hpp"

namespace foretrain::gpu {

namespace {

Sampled time_on(int device, const OperatorSpec& spec, bool quick) {
  const OnDevice here(device);
  warm_clocks(Seconds(quick ? 0.1 : 0.5));
  const Stream stream;
  OperandPool memory(stream.get());
  const auto runner = make_runner(with_precision_of(spec, compute_capability()), {memory, 1});
  const Launch launch = [&](cudaStream_t on, int turn) { runner->launch(on, turn); };
  return time_sustained(stream, launch, Seconds(quick ? 0.3 : 2.0), runner->kernels());
}

}  // namespace

void run_devices(SuiteRun& run) {
  const std::pair<const char*, OperatorSpec> works[] = {
      {"product", {"matmul", {{"m", "8192"}, {"n", "8192"}, {"k", "8192"}, {"precision", "bf16"}}}},
      {"sum", {"elementwise", {{"elements", "268435456"}, {"inputs", "2"}, {"precision", "fp32"}}}}};
  for (const auto& [name, spec] : works) {
    for (int device = 0; device < visible_devices(); ++device) {
      const Record record =
          plain_point("device_speed", {{"work", name}, {"gpu", std::to_string(device)}, {"timing", "stream"}});
      if (!run.point(record, [&] { return time_on(device, spec, run.quick()); })) return;
    }
  }
}

}  // namespace foretrain::gpu
