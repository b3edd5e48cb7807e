#include "reports/explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/base/format.hpp"

namespace foretrain {

namespace {

/// Tensor-core utilisation while kernels run; below it shapes or formats are at fault.
constexpr double least_utilisation = 0.35;

struct Diagnosis {
  const char *question, *bottleneck, *advice;
};

/// Of each of `idle_parts`.
constexpr std::array<Diagnosis, idle_parts.size()> of_idle_parts = {
    {{"data stall", "data loading",
      "more loader workers, faster storage, decoding on the GPU, or a cache of decoded samples"},
     {"host overhead", "kernel dispatch on the CPU",
      "fewer and larger kernels: larger micro-batches, compiled execution, CUDA graphs"},
     {"pipeline bubble", "the pipeline bubble",
      "more micro-batches, fewer stages, interleaving or a zero-bubble schedule"},
     {"exposed communication", "communication",
      "overlap, fewer bytes (precision, compression, gradient accumulation), another algorithm or placement, faster "
      "links"}}};

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
  static constexpr std::array<std::pair<const char*, const char*>, 4> links = {
      {{"network bandwidth", "over the network"},
       {"NVLink", "over NVLink"},
       {"network latency", "by network latency"},
       {"PCIe and CPU sockets", "over PCIe"}}};
  const auto* const most =
      std::ranges::max_element(links, {}, [&](const auto& link) { return share_of(e.sensitivities, link.first); });
  return fmt::format("{}: {}", most->second, largest_exposed(*e.result.train()));
}

/// The decision tree: is the GPU idle, and why; if it is active, with what.
void diagnose(const Scenario& scenario, Explanation& e) {
  const TrainResult& train = *e.result.train();
  const Breakdown& b = train.breakdown;
  const auto ask = [&](std::string question, double share, double limit) {
    e.path.push_back({std::move(question), share, limit});
    return e.path.back().yes();
  };
  for (std::size_t i = 0; i < idle_parts.size(); ++i) {
    const auto& [question, bottleneck, advice] = of_idle_parts[i];
    if (!ask(question, b.*idle_parts[i].time / train.step_time, idle_parts[i].limit)) continue;
    e.bottleneck = bottleneck;
    if (idle_parts[i].time == &Breakdown::exposed_communication) e.bottleneck += " " + where_exposed(e);
    e.advice = advice;
    return;
  }
  const double memory = share_of(e.sensitivities, "GPU memory bandwidth");
  const double arithmetic = share_of(e.sensitivities, "GPU compute");
  if (ask("memory-bound share, against compute-bound", memory, arithmetic)) {
    e.bottleneck = "GPU memory bandwidth";
    e.advice = "fused kernels (compiled execution, FlashAttention), smaller formats, larger micro-batches";
    return;
  }
  const auto* of = std::get_if<TrainWorkload>(&scenario.workload);
  const Gpu& gpu = scenario.cluster.node.gpu;
  const double peak = gpu.matrix_rate(of->precision).value();
  const double use = b.compute > Seconds(0.0) && peak > 0.0
                         ? train.model_flops_per_second_per_gpu.value() * (train.step_time / b.compute) / peak
                         : 1.0;
  if (ask("tensor cores idle while kernels run", 1.0 - use, 1.0 - least_utilisation)) {
    e.bottleneck = fmt::format("low tensor-core utilisation: {} while kernels run", format_percent(use));
    e.advice = "larger GEMMs (micro-batch, fewer tensor-parallel ranks), no recomputation, a faster number format";
    return;
  }
  e.bottleneck = "GPU compute";
  e.advice = "the GPUs are well utilised: more or faster GPUs, or a faster number format";
}

double speed_of(const Result& result) {
  return result.train() ? result.train()->samples_per_second : 1.0 / result.time().value();
}

}  // namespace

void set_spread(Explanation& e, const Result& with_jitter) {
  if (!with_jitter.train() || !with_jitter.train()->spread) return;
  TrainResult::Spread& spread = e.spread.emplace(*with_jitter.train()->spread);
  const double longer = e.result.time() / e.unchanged().time();
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
