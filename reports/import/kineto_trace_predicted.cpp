#include "reports/import/kineto_trace.hpp"

#include <memory>
#include <string_view>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/job/job.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

KernelKind kind_of(const Operator& op) {
  using enum KernelKind;
  if (std::holds_alternative<Matmul>(op.work)) return matmul;
  if (std::holds_alternative<Attention>(op.work)) return attention;
  if (std::holds_alternative<Convolution>(op.work)) return convolution;
  const auto* streaming = std::get_if<Streaming>(&op.work);
  const bool norm = to_lower(op.name).find("norm") != std::string::npos;
  if (streaming == nullptr) return gather;
  switch (streaming->kind) {
    case StreamingKind::reduction:
      return norm ? normalisation : reduction;
    case StreamingKind::gather:
      return gather;
    case StreamingKind::optimizer:
      return optimizer;
    case StreamingKind::elementwise:
      break;
  }
  return elementwise;
}

/// By the names of CommunicationTime and InsideTraffic; "tensor-parallel sum" is an all-reduce.
KernelKind kind_of_transfer(std::string_view name) {
  using enum KernelKind;
  static constexpr std::pair<std::string_view, KernelKind> rows[] = {{"all-reduce", all_reduce},
                                                                     {" sum", all_reduce},
                                                                     {"gather", all_gather},
                                                                     {"scatter", reduce_scatter},
                                                                     {"all-to-all", all_to_all},
                                                                     {"expert", all_to_all},
                                                                     {"token", all_to_all},
                                                                     {"pipeline", p2p},
                                                                     {"ring", p2p},
                                                                     {"copies", copy}};
  for (const auto& [part, kind] : rows) {
    if (name.find(part) != std::string_view::npos) return kind;
  }
  return communication;
}

/// Collectives inside layers are one row of the result: each kind has its share of the time that all take alone.
void add_communication(const TrainResult& train, PredictedStep& step) {
  for (const auto& [name, time] : train.communication) {
    if (name != inside_layers) {
      step.kernels[kind_of_transfer(name)].time += time.total;
      step.kernels[kind_of_transfer(name)].alone += time.exposed;
      continue;
    }
    Seconds all;
    for (const auto& [inside, traffic] : train.inside_layers) all += traffic.alone;
    for (const auto& [inside, traffic] : train.inside_layers) {
      TracedKernels& kernels = step.kernels[kind_of_transfer(inside)];
      const double share = all > Seconds(0.0) ? traffic.alone / all : 0.0;
      kernels.count += traffic.count;
      kernels.time += share * time.total;
      kernels.alone += share * time.exposed;
    }
  }
}

}  // namespace

PredictedStep predicted_kernels(const Scenario& scenario, Fidelity fidelity) {
  if (!std::holds_alternative<TrainWorkload>(scenario.workload)) {
    throw ScenarioError({scenario.name, 0, 0}, "workload", "nothing that is trained", "workload: { train: … }");
  }
  const std::unique_ptr<Job> job = make_job(scenario, fidelity, Recipes::kept);
  PredictedStep step{scenario.name, {}, result_of(*job, executor_of(*job, fidelity))};
  for (const Task& task : job->graph().tasks()) {
    const Block& block = job->graph().blocks()[static_cast<std::size_t>(task.block)];
    const Resource& resource = job->graph().resources()[static_cast<std::size_t>(task.resource)];
    if (resource.rank_class != 0 || block.recipe == nullptr) continue;
    for (const RecipeWork& work : block.recipe->work) {
      const auto* priced = std::get_if<PricedOperator>(&work);
      if (priced == nullptr) continue;
      TracedKernels& kernels =
          step.kernels[block.category == Category::optimizer ? KernelKind::optimizer : kind_of(priced->op)];
      kernels.time += priced->predicted * static_cast<double>(priced->count);
      kernels.alone = kernels.time;
      kernels.count += priced->count;
    }
  }
  add_communication(*step.result.train(), step);
  return step;
}

}  // namespace foretrain
