#include "reports/explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "model/base/format.hpp"

namespace foretrain {

namespace {

/// Tensor-core utilisation while kernels run; below it shapes or formats are at fault.
constexpr double least_utilisation = 0.35;

struct Diagnosis {
  const char *question, *bottleneck;
};

constexpr std::array<Diagnosis, idle_parts.size()> of_idle_parts = {{{"data stall", "data loading"},
                                                                     {"host overhead", "kernel dispatch on the CPU"},
                                                                     {"pipeline bubble", "the pipeline bubble"},
                                                                     {"exposed communication", "communication"}}};

/// The remedies that a training does not use yet, in one line.
std::string unused(std::initializer_list<std::pair<const char*, bool>> remedies) {
  std::string text;
  for (const auto& [remedy, is_unused] : remedies) {
    if (is_unused) text += fmt::format("{}{}", text.empty() ? "" : ", ", remedy);
  }
  return text;
}

std::string advice_on(Seconds Breakdown::*part, const Plan& plan) {
  const Sync& sync = plan.sync;
  if (part == &Breakdown::data_stall) {
    return "more loader workers, faster storage, decoding on the GPU, a cache of decoded samples";
  }
  if (part == &Breakdown::host_overhead) {
    return unused({{"larger micro-batches", true},
                   {"compiled execution", plan.execution == ExecutionMode::eager},
                   {"CUDA graphs", plan.execution != ExecutionMode::cuda_graph}});
  }
  if (part == &Breakdown::pipeline_bubble) {
    return unused({{"more micro-batches", true},
                   {"fewer stages", true},
                   {"interleaving", plan.interleave == 1},
                   {"a zero-bubble schedule", !splits_backward(plan.schedule)}});
  }
  return unused({{"overlap with the backward pass", !sync.overlap},
                 {"gradient reduction in bf16", sync.gradient_precision == Precision::fp32},
                 {"gradient compression", sync.compression.kind == Compression::Kind::none},
                 {"gradient accumulation over a larger batch", true},
                 {"fewer tensor-parallel ranks", plan.tensor > 1},
                 {"another algorithm or placement", true},
                 {"faster links", true}});
}

double share_of(const std::vector<Sensitivity>& sensitivities, const std::string& resource) {
  const auto found = std::ranges::find(sensitivities, resource, &Sensitivity::resource);
  return found == sensitivities.end() ? 0.0 : found->share;
}

std::string largest_exposed(const TrainResult& train) {
  const auto largest =
      std::ranges::max_element(train.communication, {}, [](const auto& entry) { return entry.second.exposed; });
  if (largest == train.communication.end()) return "";
  return fmt::format("{} ({})", largest->first, format_seconds(largest->second.exposed));
}

/// "over the network: gradient all-reduce (279 ms)": the links of the greatest sensitivity, and the longest exposure.
std::string where_exposed(const Explanation& e) {
  static constexpr std::array<std::pair<const char*, const char*>, 5> links = {
      {{"network bandwidth", "over the network"},
       {"NVLink", "over NVLink"},
       {"Infinity Fabric", "over Infinity Fabric"},
       {"network latency", "by network latency"},
       {"PCIe and CPU sockets", "over PCIe"}}};
  const auto* const most =
      std::ranges::max_element(links, {}, [&](const auto& link) { return share_of(e.sensitivities, link.first); });
  return fmt::format("{}: {}", most->second, largest_exposed(*e.result.train()));
}

/// FLOPs of a step over those of its model: full recomputation repeats the forward pass, a third of them.
double work_of_passes(const TrainWorkload& train) {
  if (train.recompute != Recompute::full) return 1.0;
  const RecomputedLayers& some = train.recompute_layers;
  return 1.0 + (some.of > 0 ? static_cast<double>(some.layers) / some.of : 1.0) / 3.0;
}

/// The decision tree: is the GPU idle, and why; if it is active, with what.
void diagnose(const Scenario& scenario, Explanation& e) {
  const TrainResult& train = *e.result.train();
  const Breakdown& b = train.breakdown;
  const auto ask = [&](const char* question, double share, double limit, const char* of_what = "step") {
    e.path.push_back({question, share, limit, of_what});
    return e.path.back().yes();
  };
  for (std::size_t i = 0; i < idle_parts.size(); ++i) {
    const auto& [question, bottleneck] = of_idle_parts[i];
    if (!ask(question, b.*idle_parts[i].time / train.step_time, idle_parts[i].limit)) continue;
    e.bottleneck = bottleneck;
    if (idle_parts[i].time == &Breakdown::exposed_communication) e.bottleneck += " " + where_exposed(e);
    e.advice = advice_on(idle_parts[i].time, scenario.plan);
    return;
  }
  const auto* of = std::get_if<TrainWorkload>(&scenario.workload);
  const double memory = share_of(e.sensitivities, "GPU memory bandwidth");
  const double arithmetic = share_of(e.sensitivities, "GPU compute");
  const double both = memory + arithmetic;
  if (ask("memory-bound compute", both > 0.0 ? memory / both : 0.0, 0.5, "compute")) {
    e.bottleneck = "GPU memory bandwidth";
    e.advice = unused({{"compiled execution", scenario.plan.execution == ExecutionMode::eager},
                       {"FlashAttention", of->attention == AttentionKind::standard},
                       {"smaller number formats", true},
                       {"larger micro-batches", true}});
    return;
  }
  const Gpu& gpu = scenario.cluster.node.gpu;
  const double peak = gpu.matrix_rate(of->precision).value();
  const double use =
      b.compute > Seconds(0.0) && peak > 0.0
          ? train.model_flops_per_second_per_gpu.value() * work_of_passes(*of) * (train.step_time / b.compute) / peak
          : 1.0;
  if (ask("idle tensor cores", 1.0 - use, 1.0 - least_utilisation, "compute")) {
    e.bottleneck = fmt::format("low tensor-core utilisation: {} while kernels run", format_percent(use));
    e.advice = unused({{"larger micro-batches", true},
                       {"fewer tensor-parallel ranks", scenario.plan.tensor > 1},
                       {"no recomputation", of->recompute != Recompute::none},
                       {"a faster number format", true}});
    return;
  }
  e.bottleneck = "GPU compute";
  e.advice = unused({{"no recomputation", of->recompute != Recompute::none},
                     {"a faster number format", true},
                     {"more or faster GPUs", true}});
}

double speed_of(const Result& result) {
  return result.train() ? result.train()->samples_per_second : 1.0 / result.time().value();
}

}  // namespace

void set_spread(Explanation& e, const Result& with_jitter) {
  if (!with_jitter.train() || !with_jitter.train()->spread) return;
  TrainResult::Spread& spread = e.spread.emplace(*with_jitter.train()->spread);
  const double longer = e.result.time() / spread.p50;  // constants are fitted to measured medians
  for (Seconds* time : {&spread.p50, &spread.p90, &spread.p99}) *time *= longer;
}

Explanation explain(const Scenario& scenario, Result result, const std::vector<WhatIf>& scaled,
                    std::vector<WhatIf> changed, std::optional<Result> estimate) {
  Explanation e;
  e.result = std::move(result);
  e.estimate = std::move(estimate);
  for (std::size_t i = 0; i + 1 < scaled.size(); i += 2) {
    if (!scaled[i].result || !scaled[i + 1].result) continue;
    const Seconds faster = scaled[i].result->time(), slower = scaled[i + 1].result->time();
    e.sensitivities.push_back(
        {scaled[i].name, faster, slower, std::log(slower / faster) / (2.0 * std::log(resource_scale))});
  }
  std::ranges::stable_sort(e.sensitivities, std::ranges::greater{}, &Sensitivity::share);
  e.remedies = std::move(changed);
  for (WhatIf& remedy : e.remedies) {
    remedy.speedup = remedy.result ? speed_of(*remedy.result) / speed_of(e.unchanged()) : 0.0;
  }
  std::ranges::stable_sort(e.remedies, std::ranges::greater{}, &WhatIf::speedup);
  if (e.result.train()) diagnose(scenario, e);
  e.critical_path = e.result.train() ? chain_of_step(*e.result.train()) : critical_path(e.result.timeline);
  if (e.result.train()) e.spread = e.result.train()->spread;
  return e;
}

}  // namespace foretrain
