// Results made by hand for the tests of reports.
#pragma once

#include "model/result.hpp"

namespace foretrain::test {

/// Beside a training step.
inline ParameterServerResult eight_workers() {
  ParameterServerResult servers;
  servers.workers = 8;
  servers.servers = 1;
  servers.imbalance = 1.25;
  servers.staleness = ParameterServerResult::Staleness{6.1, 6.0, 7.0, 14.0, 14.0};
  servers.link_utilisation = 0.37;
  servers.cpu_utilisation = 0.064;
  servers.compute_bound = Seconds(0.208);
  servers.link_bound = Seconds(0.0773);
  servers.server_bound = Seconds(0.0134);
  return servers;
}

/// A step of a quarter's exposed communication, on GPUs of 80 GB.
inline Result short_step(double seconds, double gigabytes = 40.0) {
  Result result;
  result.scenario = "a step";
  TrainResult& train = result.work.emplace<TrainResult>();
  train.step_time = Seconds(seconds);
  train.samples_per_second = 64.0 / seconds;
  train.mfu = 0.4;
  train.breakdown.compute = Seconds(0.75 * seconds);
  train.breakdown.exposed_communication = Seconds(0.25 * seconds);
  train.memory.weights = Bytes(gigabytes * 1e9);
  train.memory.capacity = Bytes(80e9);
  return result;
}

/// A language model on 1,024 GPUs; its memory fits.
inline Result large_step() {
  Result result;
  result.scenario = "GPT-3 175B on 1,024 A100";
  TrainResult& train = result.work.emplace<TrainResult>();
  train.step_time = Seconds(44.0);
  train.samples_per_second = 34.9;
  train.tokens_per_second = 71500.0;
  train.tokens_per_second_per_gpu = 69.8;
  train.model_flops_per_second_per_gpu = FlopsPerSecond(141e12);
  train.mfu = 0.452;
  train.breakdown = {Seconds(33.0), Seconds(2.2), Seconds(6.6), Seconds(0.0), Seconds(0.22), Seconds(1.98)};
  train.communication["gradient all-reduce"] = {Seconds(1.5), Seconds(0.5)};
  train.communication["tensor all-reduce"] = {Seconds(1.7), Seconds(1.7)};
  train.memory = {.weights = Bytes(6e9),
                  .gradients = Bytes(6e9),
                  .optimizer = Bytes(32e9),
                  .activations = Bytes(20e9),
                  .workspace = Bytes(2e9),
                  .capacity = Bytes(80.0 * 1073741824.0)};
  train.bottleneck = "matrix products: 75 % of the step";
  train.time_to_train = Seconds(24.0 * 86400.0);
  result.train()->cost_usd = 1.47e6;
  result.settings = {{"Machines", "", "128 x dgx-a100-80gb", "", false},
                     {"Plan", "data", "16", "plan.data", true},
                     {"Plan", "tensor", "8", "plan.tensor", false},
                     {"Gradients", "by", "ring", "plan.sync.algorithm", false}};
  result.train()->trainer = "megatron";
  result.train()->framework_settings = {
      {"plan.tensor_overlap", "false", ResolvedSetting::From::scenario, ""},
      {"plan.sync.bucket", "megatron", ResolvedSetting::From::trainer, "Megatron-Core's bucket_size"},
      {"plan.execution", "eager", ResolvedSetting::From::assumed, "PyTorch, unless asked"}};
  result.uncertainty_low = Seconds(40.0);
  result.uncertainty_high = Seconds(48.0);
  result.provenance = {{"a100.memory", 80.0, "GiB", ConstantKind::datasheet, "NVIDIA A100 datasheet"},
                       {"matmul.tensor_efficiency", 0.91, "", ConstantKind::fit, "41 rows of a table"}};
  return result;
}

/// 14 + 14 + 56 GB of model state on a card of 80 GB: does not fit, with advice.
inline Result step_that_does_not_fit() {
  Result result;
  result.scenario = "7 B parameters on one card";
  result.fidelity = Fidelity::estimate;
  TrainResult& train = result.work.emplace<TrainResult>();
  train.step_time = Seconds(0.5);
  train.samples_per_second = 2.0;
  train.breakdown = {Seconds(0.4), Seconds(0.0), Seconds(0.0), Seconds(0.0), Seconds(0.0), Seconds(0.1)};
  train.memory = {.weights = Bytes(14e9),
                  .gradients = Bytes(14e9),
                  .optimizer = Bytes(56e9),
                  .activations = Bytes(0.0),
                  .workspace = Bytes(0.0),
                  .capacity = Bytes(80e9)};
  result.warnings = {"84 GB are needed and 80 GB are there: zero 1 over 2 GPUs would fit"};
  return result;
}

inline Result collective() {
  Result result;
  result.scenario = "ring of four";
  result.fidelity = Fidelity::steps;
  result.work = CollectiveResult{Seconds(0.015), BytesPerSecond(160e6 / 0.015), BytesPerSecond(16e9), "ring"};
  return result;
}

inline Result matrix_product() {
  Result result;
  result.scenario = "4096 cubed";
  result.work =
      OperatorResult{Seconds(0.0005), Flops(2.0 * 4096 * 4096 * 4096), Bytes(3.0 * 2 * 4096 * 4096), "compute"};
  return result;
}

inline Result task_list() {
  Result result;
  result.scenario = "two tasks";
  result.work = TasksResult{Seconds(2.0), {{"copy", Seconds(2.0)}, {"multiply", Seconds(1.25)}}};
  return result;
}

}  // namespace foretrain::test
