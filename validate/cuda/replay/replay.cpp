#include "validate/cuda/replay/replay.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/base/statistics.hpp"
#include "validate/cuda/core/state_sampler.hpp"
#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_spec.hpp"
#include "validate/cuda/replay/replayer.hpp"

namespace foretrain::gpu {

namespace {

std::optional<double> median_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return median(values);
}

/// Steps with events between tasks, a few times: medians of each moment.
void time_tasks(Replayer& replayer, int repetitions, replay::Result& result) {
  struct Series {
    std::vector<double> start, end, duration, host;
  };
  std::vector<Series> series(result.tasks.size());
  for (int i = 0; i < repetitions; ++i) {
    replayer.step(Replayer::Detail::tasks);
    const Moments moments = replayer.moments();
    for (const auto& [task, times] : moments.tasks) {
      Series& s = series[static_cast<std::size_t>(task)];
      s.start.push_back(times.first);
      s.end.push_back(times.second);
      s.duration.push_back(times.second - times.first);
    }
    for (const auto& [task, time] : moments.host) series[static_cast<std::size_t>(task)].host.push_back(time);
  }
  for (std::size_t task = 0; task < series.size(); ++task) {
    const Series& s = series[task];
    result.tasks[task] = {median_of(s.start), median_of(s.end), std::nullopt, median_of(s.host)};
    const double middle = s.duration.empty() ? 0.0 : median(s.duration);
    if (middle > 0.0) result.tasks[task].spread = Sampled{s.duration}.spread();
  }
}

void time_pieces(Replayer& replayer, int repetitions, replay::Result& result) {
  std::map<std::pair<int, std::size_t>, std::vector<double>> times;
  for (int i = 0; i < repetitions; ++i) {
    replayer.step(Replayer::Detail::work);
    for (const auto& [item, values] : replayer.moments().items) {
      std::vector<double>& all = times[item];
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  for (const auto& [item, values] : times) result.work.push_back({item.first, item.second, median(values)});
}

/// Notes work that replaced the graph's, beside its times.
void note_what_ran(const replay::Graph& graph, replay::Result& result) {
  std::set<std::string> others;
  for (replay::WorkTime& time : result.work) {
    const Work& work = graph.blocks[static_cast<std::size_t>(time.block)].work[time.index];
    const auto* kernel = std::get_if<KernelWork>(&work);
    if (kernel == nullptr) continue;
    const OperatorSpec ran = as_run({kernel->kind, kernel->fields}, compute_capability());
    if (ran.fields == kernel->fields) continue;
    time.ran = ran.fields;
    others.insert(kernel->name);
  }
  for (const std::string& name : others) {
    result.notes.push_back(name + ": cuDNN's kernel ran, not the one of FlashAttention-2 that is predicted");
  }
}

/// A step of seconds is known after a few; one of microseconds is repeated until the time is up.
StoppingRule rule_for(double step_s, bool quick) {
  StoppingRule rule{.warm_up = 3, .least = 7, .most = quick ? 50 : 200, .budget = Seconds(quick ? 1.0 : 5.0)};
  if (step_s * rule.least <= rule.budget.value()) return rule;
  rule.warm_up = 0;
  rule.least = 3;
  return rule;
}

}  // namespace

replay::Result run_replay(const replay::Graph& graph, bool quick, const Nvml& nvml) {
  Replayer replayer(graph);
  replayer.step(Replayer::Detail::step);  // loads what kernels and libraries need
  const double begin = now();
  replayer.step(Replayer::Detail::step);
  const StoppingRule rule = rule_for(now() - begin, quick);
  replay::Result result;
  std::vector<double> host;
  StateSampler sampler(nvml, bus_id_of(0));
  const Sampled steps = sample(
      [&] {
        const double time = replayer.step(Replayer::Detail::step);
        host.push_back(replayer.host_time());
        return time;
      },
      rule);
  result.state = sampler.finish();
  result.steps = steps.values;
  result.host_launch = median(host);
  result.tasks.resize(graph.tasks.size());
  const int repetitions = rule.warm_up == 0 ? 1 : quick ? 3 : 9;
  time_tasks(replayer, repetitions, result);
  const auto has_pieces = [](const replay::Block& block) { return block.work.size() > 1; };
  if (std::ranges::any_of(graph.blocks, has_pieces)) time_pieces(replayer, repetitions, result);
  for (const auto& doer : replayer.doers()) {
    doer->check_finite();
    if (const std::string text = doer->description(); !text.empty()) result.notes.push_back(text);
  }
  // All that is taken now, with the context and whatever else uses this GPU: nothing was given back on the way.
  const OnDevice first(0);
  std::size_t free_now = 0, total = 0;
  GPU_CHECK(cudaMemGetInfo(&free_now, &total));
  result.memory = static_cast<double>(total - free_now);
  note_what_ran(graph, result);
  const auto keeps_pace = [](const replay::Resource& r) { return r.kind == replay::Resource::Kind::framework; };
  if (std::ranges::any_of(graph.resources, keeps_pace)) {
    result.notes.emplace_back(
        "its host hands kernels over as slowly as it was predicted to, where it can do so faster");
  }
  if (graph.capture) {
    result.notes.emplace_back("steps are CUDA graphs; tasks were timed in steps launched kernel by kernel");
  }
  return result;
}

}  // namespace foretrain::gpu
