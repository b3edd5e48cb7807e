#include "model/memory/memory.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t most_samples = std::int64_t{1} << 30;

MemoryFootprint footprint_of(const Scenario& scenario, const TrainWorkload& train) {
  return memory_footprint(scenario, train, build_model(train.model, build_options(train, scenario.plan)));
}

/// The global batch that `train` needs at least for one pass of each replica, in whole passes.
void make_divisible(TrainWorkload& train, const Plan& plan) {
  const std::int64_t pass = train.micro_batch * plan.data;
  train.global_batch = std::max(train.global_batch / pass, std::int64_t{1}) * pass;
}

class Remedies {
 public:
  Remedies(const Scenario& scenario, const TrainWorkload& train) : scenario_(scenario), train_(train) {}

  std::vector<std::string> find() && {
    recompute();
    smaller_micro_batch();
    offload();
    sharding();
    std::ranges::stable_sort(found_, {}, &Found::gpus);
    adapters();
    std::vector<std::string> texts;
    for (Found& one : found_) texts.push_back(std::move(one.text));
    return texts;
  }

 private:
  struct Found {
    int gpus;  ///< of all data-parallel ranks
    std::string text;
  };

  bool consider(const Scenario& s, const TrainWorkload& t, const std::string& change) {
    const MemoryFootprint m = footprint_of(s, t);
    if (!m.fits()) return false;
    const int gpus = s.plan.data * s.plan.tensor * s.plan.pipeline * s.plan.context;
    found_.push_back({gpus, fmt::format("fits with {}: {:.1f} of {:.1f} GB", change, m.total().value() / 1e9,
                                        m.capacity.value() / 1e9)});
    return true;
  }

  void recompute() {
    if (train_.recompute == Recompute::full) return;
    TrainWorkload t = train_;
    t.recompute = Recompute::full;
    consider(scenario_, t, "recompute: full");
  }

  void smaller_micro_batch() {
    for (std::int64_t micro = train_.micro_batch / 2; micro >= 1; micro /= 2) {
      if (train_.micro_batch % micro != 0) continue;
      TrainWorkload t = train_;
      t.micro_batch = micro;
      if (consider(scenario_, t, fmt::format("micro_batch: {}", micro))) break;
    }
  }

  void adapters() {
    const auto* model = std::get_if<TransformerConfig>(&train_.model.shape);
    if (model == nullptr || !is_causal(model->family) || model->experts > 1 || !train_.parts.all()) return;
    TrainWorkload t = train_;
    t.parts.lora = Lora{};
    consider(scenario_, t, fmt::format("lora: {{ rank: {} }}, another training (of adapters)", t.parts.lora->rank));
  }

  void offload() {
    if (!scenario_.cluster.groups.empty()) return;
    Scenario s = scenario_;
    if (!s.plan.offload.optimizer) {
      s.plan.offload.optimizer = true;
      if (consider(s, train_, offload_change(s.plan.offload))) return;
    }
    if (!s.plan.offload.parameters) {
      s.plan.offload.parameters = true;
      consider(s, train_, offload_change(s.plan.offload));
    }
  }

  /// All words, those that the plan has already too: the key is replaced as a whole.
  static std::string offload_change(const Plan::Offload& offload) {
    std::vector<std::string_view> words;
    if (offload.optimizer) words.emplace_back("optimizer");
    if (offload.parameters) words.emplace_back("parameters");
    if (offload.activations) words.emplace_back("activations");
    return words.size() == 1 ? fmt::format("offload: {}", words.front())
                             : fmt::format("offload: [{}]", fmt::join(words, ", "));
  }

  // Over the replicas that there are, or over more cards of the same kind.
  void sharding() {
    if (has_servers(scenario_.plan.sync.algorithm)) return;  // the servers hold the optimizer's states
    const int parted = scenario_.plan.zero_gradients == ZeroGradients::kept ? 2 : 1;  // which scatter once a step
    const int highest = splits_backward(scenario_.plan.schedule) ? parted : 3;
    for (int zero = std::max(scenario_.plan.zero, 1); zero <= highest; ++zero) {
      for (int replicas = std::max(scenario_.plan.data, 2); replicas <= 512; replicas *= 2) {
        if (sharded(zero, replicas)) break;
      }
    }
  }

  bool sharded(int zero, int replicas) {
    const Plan& plan = scenario_.plan;
    if (zero == plan.zero && replicas == plan.data && plan.shard == 0) return false;  // recomputation alone
    for (const Recompute recompute : {train_.recompute, Recompute::full}) {
      Scenario s = scenario_;
      TrainWorkload t = train_;
      s.plan.zero = zero;
      s.plan.shard = 0;
      s.plan.data = replicas;
      t.recompute = recompute;
      make_divisible(t, s.plan);
      const int gpus = replicas * s.plan.tensor * s.plan.pipeline * s.plan.context;
      const std::string and_recompute = recompute != train_.recompute ? " and recompute: full" : "";
      const std::string change =
          fmt::format("zero: {} over {} replicas ({} GPUs){}", zero, replicas, gpus, and_recompute);
      if (consider(s, t, change)) return true;
      if (train_.recompute == Recompute::full) break;
    }
    return false;
  }

  const Scenario& scenario_;
  const TrainWorkload& train_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<std::string> remedies_for_memory(const Scenario& scenario, const TrainWorkload& train) {
  if (footprint_of(scenario, train).fits()) return {};
  return Remedies(scenario, train).find();
}

std::int64_t largest_micro_batch(const Scenario& scenario, const TrainWorkload& train) {
  const int passes = micro_batches(train, scenario.plan);
  const auto fits = [&](std::int64_t micro) {
    TrainWorkload t = train;
    t.micro_batch = micro;
    t.global_batch = micro * scenario.plan.data * passes;
    return footprint_of(scenario, t).fits();
  };
  if (!fits(1)) return 0;
  std::int64_t good = 1;
  std::int64_t bad = 2;
  while (bad < most_samples && fits(bad)) {
    good = bad;
    bad *= 2;
  }
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace foretrain
