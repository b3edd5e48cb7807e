// Suites of single operators: one record for each point of a design.
#include <utility>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_runner.hpp"
#include "validate/cuda/suites/operator_points.hpp"
#include "validate/cuda/suites/points.hpp"
#include "validate/measure/json_object.hpp"

namespace foretrain::gpu {

namespace {

/// Hundreds of points share a suite's time: each has less of it than points of other suites.
StoppingRule rule_of(const SuiteRun& run) {
  StoppingRule rule = run.rule();
  rule.warm_up = 1;
  rule.least = 7;
  rule.most = 60;
  rule.budget = Seconds(run.quick() ? 0.1 : 0.15);
  return rule;
}

Record record_of(const OperatorPoint& point) {
  Record record = operator_point(point.spec, {});
  record.name = point.name();
  const bool out = held_out(record.name) && !point.sustained;
  record.parameters = {{"timing", "stream"}, {"family", point.family}, {"held_out", out ? "true" : "false"}};
  if (point.sustained) record.parameters["sustained"] = "true";
  return record;
}

bool is_streaming(const OperatorSpec& spec) {
  return spec.kind != "matmul" && spec.kind != "convolution" && spec.kind != "attention";
}

/// Makes each point's operator and times it: launched back to back, with operands that rotate so
/// that they come from device memory (`parameters.cache: cold`) or, where all sets that there are still fit into the
/// L2, from there (`warm`). Only quick points with --quick.
void measure_operators(SuiteRun& run, const std::vector<OperatorPoint>& points) {
  const Stream stream;
  const int capability = compute_capability();
  for (OperatorPoint point : points) {
    if (run.quick() && !point.quick) continue;
    point.spec = with_precision_of(std::move(point.spec), capability);
    const bool in_time = run.point(record_of(point), [&](Record& record) {
      OperandPool memory(stream.get());
      const auto runner = make_runner(point.spec, {memory, 0});
      record.parameters.merge(runner->parameters());
      record.parameters["operand_sets"] = std::to_string(runner->operand_sets());
      record.parameters["operand_bytes"] = std::to_string(runner->bytes());
      record.parameters["kernels"] = std::to_string(runner->kernels());
      record.parameters["cache"] = is_cold(runner->bytes(), runner->operand_sets()) ? "cold" : "warm";
      run.begin_timing();
      const Launch launch = [&](cudaStream_t on, int turn) { runner->launch(on, turn); };
      if (point.sustained) return time_sustained(stream, launch, Seconds(run.quick() ? 0.8 : 2.5), runner->kernels());
      // If all operands fit in the L2, also with an empty L2, as in a step. Only if the model
      // knows.
      if (record.parameters["cache"] == "warm" && is_streaming(point.spec)) {
        record.parameters["flushed_s"] = json_number(time_flushed(stream, launch).value());
      }
      return time_stream(stream, launch, rule_of(run), Seconds(2e-3), runner->kernels());
    });
    if (!in_time) return;
  }
}

}  // namespace

#define OPERATOR_SUITE(name, ...) \
  void run_##name(SuiteRun& run) { measure_operators(run, name##_points()); }
#include "validate/cuda/core/suites.def"

}  // namespace foretrain::gpu
