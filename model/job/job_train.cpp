#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "model/base/words.hpp"
#include "model/collectives/contention.hpp"
#include "model/cost/kernels.hpp"
#include "model/job/job_kinds.hpp"
#include "model/job/training_outlook.hpp"
#include "model/loading/loader_graph.hpp"
#include "model/memory/memory.hpp"
#include "model/parallelism/layout.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/scenario/workload/workload_reader.hpp"
#include "model/tasks/model_call.hpp"
#include "model/training/outcome/batch_split.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "model/training/outcome/checkpoint.hpp"
#include "model/training/outcome/communication_ratio.hpp"
#include "model/training/outcome/jitter.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

Seconds mean_of(const std::vector<Seconds>& times) {
  Seconds sum;
  for (const Seconds time : times) sum += time;
  return sum / static_cast<double>(times.size());
}

/// `steps` without what a step takes beyond its graph, which is the same in all.
void set_spread(const std::vector<Seconds>& steps, TrainResult& train) {
  const Seconds beside = train.step_time - mean_of(steps);
  std::vector<double> values;
  values.reserve(steps.size());
  for (const Seconds step : steps) values.push_back((step + beside).value());
  train.spread = TrainResult::Spread{Seconds(quantile(values, 0.5)), Seconds(quantile(values, 0.9)),
                                     Seconds(quantile(values, 0.99))};
}

void warn_of_loader(Result& result, const Scenario& scenario, const Step& step) {
  const Node& node = scenario.cluster.node_at(step.loader_node);
  if (step.loader && step.loader->memory > node.cpu.memory) {
    result.warnings.push_back(
        fmt::format("the loader's workers need {:.1f} GB of a machine's memory, which has {:.1f} GB",
                    step.loader->memory.value() / 1e9, node.cpu.memory.value() / 1e9));
  }
}

/// Nobody would choose a format that is multiplied in a wider one, but a GPU may be swapped for one that has no units
/// for it.
void warn_of_format(Result& result, const Scenario& scenario, Precision precision) {
  const auto check = [&](const Gpu& gpu) {
    const Precision wider = gpu.arithmetic_precision(precision);
    if (wider == precision) return;
    const bool half = precision == Precision::bf16 && gpu.has_tensor_cores(Precision::fp16);
    std::string warning = fmt::format("{}: products are computed in {}{}", no_units(gpu, precision), name(wider),
                                      half ? "; it has units for fp16" : "");
    if (std::ranges::find(result.warnings, warning) != result.warnings.end()) return;
    result.warnings.push_back(std::move(warning));
  };
  if (scenario.cluster.groups.empty()) return check(scenario.cluster.node.gpu);
  for (const NodeGroup& group : scenario.cluster.groups) check(group.node.gpu);
}

/// MFU counts plain algorithms against the datasheet's peak in the workload's precision. Some operators need fewer
/// multiplications, or run in another precision.
void warn_of_mfu(Result& result, const Scenario& scenario, const Model& model) {
  const double mfu = result.train()->mfu;
  if (!(mfu > 1.0)) return;
  const Precision precision = std::get<TrainWorkload>(scenario.workload).precision;
  const Gpu& gpu = scenario.cluster.node.gpu;
  double saving = 1.0;
  bool faster = false;
  for (const Operator& op : operators_of(model, true)) {
    faster = faster || gpu.matrix_rate(op.precision) > gpu.matrix_rate(precision);
    if (const auto* work = std::get_if<Convolution>(&op.work)) {
      saving = std::max(saving, transform_saving(*work, op.precision));
    }
  }
  std::string why = "this GPU is calibrated to more than the peak of its datasheet";
  if (faster) why = fmt::format("some products run in a faster precision than {}", name(precision));
  if (saving > 1.0) {
    why = fmt::format(
        "it counts the multiplications of plain convolutions; Winograd's algorithm and Fourier transforms need up to "
        "{:.1f} times fewer",
        saving);
  }
  result.warnings.push_back(fmt::format("MFU is {:.0f} %: {}", 100.0 * mfu, why));
}

class TrainJob final : public Job {
 public:
  TrainJob(const Scenario& scenario, Fidelity fidelity, Recipes recipes, InsideLayers inside)
      : Job(scenario, fidelity),
        model_(build_model(train().model, build_options(train(), scenario.plan))),
        step_(build_step(scenario, train(), model_, topology_, recipes, inside)),
        replica_kinds_(divide(scenario)),
        graph_(step_graph(step_)) {}

  [[nodiscard]] const TaskGraph& graph() const override { return graph_.graph; }
  [[nodiscard]] const Topology& topology() const override { return step_.few_nodes ? *step_.few_nodes : topology_; }
  void set_writing(double longer) override { longer_beside_write_ = longer; }

  [[nodiscard]] Result read(const Execution& execution, const Executor& execute) const override {
    const Seconds alone = execution.makespan;
    Seconds end = alone;
    std::vector<Seconds> steps;
    if (const std::optional<Jitter>& jitter = scenario_.cluster.jitter) {
      steps = draw_steps(*jitter, alone, execute);
      end = mean_of(steps);
    }
    const std::optional<Seconds> loader = loader_interval_beside(end, execute);
    auto [breakdown, communication, inside] = time_use(step_, graph_, execution, end, loader);
    Result result = named_result();
    fill_training(result, scenario_, topology_, model_, step_, step_time(step_, end, loader), breakdown,
                  std::move(communication));
    result.train()->inside_layers = std::move(inside);
    if (!steps.empty()) set_spread(steps, *result.train());
    if (train().checkpoint) add_checkpoints(*train().checkpoint, alone, execute, result);
    if (scenario_.plan.split) add_split(execute, end, *result.train());
    return result;
  }

 private:
  /// If a simulation has many flows, some forty of them are estimates, against that of the step without chance.
  [[nodiscard]] std::vector<Seconds> draw_steps(const Jitter& jitter, Seconds step, const Executor& execute) const {
    if (flows_of(graph()) <= many_flows) return steps_with_jitter(step_, jitter, topology_, execute);
    const auto estimate = [](const TaskGraph& graph) { return run(graph); };
    std::vector<Seconds> steps = steps_with_jitter(step_, jitter, topology_, estimate);
    const double longer = step / estimate(graph()).makespan;
    for (Seconds& drawn : steps) drawn *= longer;
    return steps;
  }

  /// By the plan's split, where it states one.
  std::vector<ReplicaKind> divide(const Scenario& scenario) {
    if (!scenario.plan.split) return {};
    return split_batch(step_, scenario, train(), topology_, *scenario.plan.split);
  }

  /// Beside it, what an equal split takes.
  void add_split(const Executor& execute, Seconds end, TrainResult& train) const {
    TrainResult::Split& split = train.split.emplace();
    split.rule = name(*scenario_.plan.split);
    for (const ReplicaKind& kind : replica_kinds_) {
      const Cluster& cluster = scenario_.cluster;
      const Node& node = cluster.groups.empty() ? cluster.node : cluster.groups[at_index(kind.group)].node;
      split.kinds.push_back({node.name, kind.replicas, kind.micro_batches});
    }
    Step equal = step_;
    equal.micro_batches = micro_batches(this->train(), scenario_.plan);
    for (Step::RankClass& rank_class : equal.rank_classes) rank_class.missing_micro_batches = 0;
    split.equal_step = train.step_time + (execute(step_graph(equal).graph).makespan - end);
  }

  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }

  /// `alone`: the step's graph without a checkpoint.
  void add_checkpoints(Checkpoint checkpoint, Seconds alone, const Executor& execute, Result& result) const {
    const CheckpointCost cost = checkpoint_cost(scenario_, train(), step_, topology_);
    Seconds with_copy = alone + cost.copy_time;
    if (checkpoint.mode != Checkpoint::Mode::synchronous) {
      Step step = step_;
      step.checkpoint = Step::Transfer::Part{cost.copy, cost.copy_time, {}};
      with_copy = execute(step_graph(step).graph).makespan;
    }
    TrainResult& train = *result.train();
    const auto checkpointed = [&] {
      return checkpointed_step(checkpoint, cost, train.step_time, {alone, with_copy, longer_beside_write_});
    };
    std::optional<Lifetime> life;
    std::optional<IntervalSearch> intervals;
    if (scenario_.cluster.failures) {
      life = lifetime_of(scenario_, train, cost, checkpointed());
      intervals = search_interval(scenario_, *life);
      if (checkpoint.best_interval) life->every = checkpoint.every = intervals->best.every;
    }
    const CheckpointedStep step = checkpointed();
    train.checkpoints = TrainResult::Checkpoints{
        checkpoint.every, std::string(name(checkpoint.mode)),    cost.state, cost.copy_time, cost.write, step.step,
        step.mean,        train.step_time * longer_beside_write_};
    if (life) return add_goodput(scenario_, *life, std::move(intervals), result);
    if (!train.time_to_train) return;
    const double steps = *train.time_to_train / train.step_time;
    const double saved = saves_before_end(steps, checkpoint.every) * checkpoint.every;
    const double longer = 1.0 + saved / steps * (step.mean / train.step_time - 1.0);
    *train.time_to_train *= longer;
    if (train.cost_usd) *train.cost_usd *= longer;
  }

  /// Time between steps that the input pipeline allows, with the step as its consumer; nothing without a loader.
  [[nodiscard]] std::optional<Seconds> loader_interval_beside(Seconds end, const Executor& execute) const {
    if (!step_.loader) return std::nullopt;
    const LoweredCollective* copy = step_.loader_copy.phases.empty() ? nullptr : &step_.loader_copy;
    const LoaderGraph line = build_loader_graph(*step_.loader, end + step_.once_per_step, copy, fidelity_);
    return loader_interval(line, execute(line.graph)) + step_.loader->restart;
  }

  Model model_;
  Step step_;
  std::vector<ReplicaKind> replica_kinds_;
  StepGraph graph_;
  double longer_beside_write_ = 1.0;
};

}  // namespace

void fill_training(Result& result, const Scenario& scenario, const Topology& topology, const Model& model,
                   const Step& step, Seconds step_time, const Breakdown& breakdown,
                   std::map<std::string, CommunicationTime> communication) {
  const auto& workload = std::get<TrainWorkload>(scenario.workload);
  const Plan& plan = scenario.plan;
  const Gpu& gpu = scenario.cluster.node.gpu;
  auto& r = result.work.emplace<TrainResult>();
  r.step_time = step_time;
  r.breakdown = breakdown;
  r.communication = std::move(communication);
  const bool in_buckets = plan.zero < 3 && !has_servers(plan.sync.algorithm);
  if (plan.data * plan.context > 1 && in_buckets) {
    r.buckets =
        TrainResult::Buckets{plan.sync.bucket, plan.sync.bucket_rule.empty() ? "stated" : plan.sync.bucket_rule};
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
  r.model = model.name;
  r.parameters = model.parameters;
  r.active_parameters = model.parameters - model.idle_parameters;
  r.bytes_per_parameter = bytes_per_parameter(plan, workload);
  r.memory = memory_footprint(scenario, workload, model);
  r.bottleneck = bottleneck_of(r.breakdown);
  if (plan.execution != ExecutionMode::eager) {
    r.execution = summary_of(plan_call(operators_of(model, true), true, plan.execution, gpu, scenario.calibration),
                             plan.execution);
  }
  if (workload.training_samples) {
    r.time_to_train = Seconds(*workload.training_samples / r.samples_per_second);
    if (scenario.cluster.usd_per_gpu_hour) {
      r.cost_usd = *scenario.cluster.usd_per_gpu_hour * gpus * r.time_to_train->value() / 3600.0;
    }
  }
  warn_of_loader(result, scenario, step);
  warn_of_format(result, scenario, workload.precision);
  warn_of_mfu(result, scenario, model);
  for (std::string& sentence : ignored_keys(scenario)) result.warnings.push_back(std::move(sentence));
}

std::optional<Seconds> time_of_graph(const Scenario& scenario) {
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  const Topology topology = Topology::of(scenario.cluster);
  const bool more = train == nullptr || train->loader || train->checkpoint || scenario.plan.split;
  if (more || scenario.cluster.jitter || topology.draws_routes()) return std::nullopt;
  const Model model = build_model(train->model, build_options(*train, scenario.plan));
  const Step step = build_step(scenario, *train, model, topology);
  return step_time(step, run(step_graph(step).graph).makespan);
}

std::unique_ptr<Job> make_train_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes, InsideLayers inside) {
  return std::make_unique<TrainJob>(scenario, fidelity, recipes, inside);
}

}  // namespace foretrain
