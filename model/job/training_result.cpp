#include "model/job/training_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/words.hpp"
#include "model/memory/memory.hpp"
#include "model/memory/memory_remedies.hpp"
#include "model/parallelism/layout.hpp"
#include "model/tasks/model_call.hpp"
#include "model/training/communication_ratio.hpp"

namespace foretrain {

namespace {

std::string bottleneck_of(const Breakdown& breakdown) {
  const std::array<std::pair<const char*, Seconds>, 6> parts = {
      {{"compute", breakdown.compute},
       {"exposed communication", breakdown.exposed_communication},
       {"pipeline bubble", breakdown.pipeline_bubble},
       {"data loading", breakdown.data_stall},
       {"host overhead", breakdown.host_overhead},
       {"optimizer", breakdown.optimizer}}};
  return std::ranges::max_element(parts, {}, &std::pair<const char*, Seconds>::second)->first;
}

void warn_of_memory(Result& result, const Scenario& scenario, const Step& step) {
  const Cluster& cluster = scenario.cluster;
  const Node& node = cluster.node_at(step.loader_node);
  if (step.loader && step.loader->memory > node.cpu.memory) {
    result.warnings.push_back(
        fmt::format("the loader's workers need {:.1f} GB of a machine's memory, which has {:.1f} GB",
                    step.loader->memory.value() / 1e9, node.cpu.memory.value() / 1e9));
  }
  const MemoryFootprint& memory = result.train->memory;
  if (memory.fits()) return;
  const std::string where = cluster.groups.empty() ? "" : fmt::format(" of node {} and its like", memory.node);
  result.warnings.push_back(fmt::format("does not fit: {:.1f} GB needed, {:.1f} GB on {}{}",
                                        memory.total().value() / 1e9, memory.capacity.value() / 1e9,
                                        cluster.node_at(memory.node).gpu.name, where));
  for (std::string& remedy : remedies_for_memory(scenario, std::get<TrainWorkload>(scenario.workload))) {
    result.warnings.push_back(std::move(remedy));
  }
}

}  // namespace

void fill_training(Result& result, const Scenario& scenario, const Topology& topology, const Model& model,
                   const Step& step, Seconds step_time, const Breakdown& breakdown,
                   std::map<std::string, CommunicationTime> communication) {
  const auto& workload = std::get<TrainWorkload>(scenario.workload);
  const Plan& plan = scenario.plan;
  const Gpu& gpu = scenario.cluster.node.gpu;
  TrainResult& r = result.train.emplace();
  r.step_time = step_time;
  r.breakdown = breakdown;
  r.communication = std::move(communication);
  const bool in_buckets = plan.sync.bucket_rule != Sync::BucketRule::layer && !has_servers(plan.sync.algorithm);
  if (plan.data * plan.context > 1 && in_buckets) {
    r.buckets = TrainResult::Buckets{plan.sync.bucket, std::string(name(plan.sync.bucket_rule))};
  }
  r.communication_to_compute = communication_ratio(scenario, workload, step, topology, r.breakdown, r.communication);
  r.samples_per_second = static_cast<double>(workload.global_batch) / r.step_time.value();
  r.tokens_per_second = r.samples_per_second * model.tokens_per_sample;
  const auto gpus = static_cast<double>(worker_gpus(plan, scenario.cluster));
  r.tokens_per_second_per_gpu = r.tokens_per_second / gpus;
  r.model_flops_per_second_per_gpu =
      step.model_flops_per_gpu * (number(plan_gpus(plan, scenario.cluster)) / gpus) / r.step_time;
  r.mfu = r.model_flops_per_second_per_gpu / peak_rate(plan, scenario.cluster, workload.precision);
  if (const auto& batch = model.batch) {
    r.token_use = TrainResult::TokenUse{model.tokens_per_sample, batch->computed_tokens, batch->visual_tokens,
                                        batch->images, step.slowest_replica};
  }
  r.memory = memory_footprint(scenario, workload, model);
  r.bottleneck = bottleneck_of(r.breakdown);
  if (plan.execution != ExecutionMode::eager) {
    r.execution = summary_of(plan_call(operators_of(model, true), true, plan.execution, gpu, scenario.calibration),
                             plan.execution);
  }
  if (workload.training_samples) {
    r.time_to_train = Seconds(*workload.training_samples / r.samples_per_second);
    if (scenario.cluster.usd_per_gpu_hour) {
      result.cost_usd = *scenario.cluster.usd_per_gpu_hour * gpus * r.time_to_train->value() / 3600.0;
    }
  }
  warn_of_memory(result, scenario, step);
  result.set_uncertainty(scenario.calibration.uncertainty.train);
}

}  // namespace foretrain
