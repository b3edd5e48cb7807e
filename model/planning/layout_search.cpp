#include "model/planning/layout_search.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "model/base/error.hpp"
#include "model/planning/candidate.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_infeasible = 3;
constexpr double rounding = 1e-9;

/// The values of the best plans known; the worst of them is what a plan has to beat.
class Bar {
 public:
  Bar(const std::vector<double>& known, std::size_t kept) : kept_(kept) {
    for (const double value : known) add(value);
  }
  void add(double value) {
    best_.push(value);
    if (best_.size() > kept_) best_.pop();
  }
  /// Ties pass: which of equal plans is kept, their points say.
  [[nodiscard]] bool is_above(double value) const {
    return best_.size() == kept_ && value * (1.0 - rounding) > best_.top();
  }

 private:
  std::priority_queue<double> best_;
  std::size_t kept_;
};

class LayoutSearch {
 public:
  LayoutSearch(const PlanSpace& space, const PlanObjective& objective, const std::vector<double>& known,
               std::size_t kept, LayoutEffort effort)
      : space_(space), objective_(objective), bar_(known, kept), kept_(kept), effort_(effort) {}

  void begin(const PlanPoint& layout) {
    for (const PlanPoint& point : space_.passes(layout)) {
      const std::int64_t plans = space_.plans_of(point);
      result_.counts.plans += plans;
      const auto bound = possible([&] {
        const PlanPoint completed = space_.completed(point);
        if (!plan_) plan_.emplace(space_, completed);
        plan_->take(completed);
        return plan_->kernels_bound();
      });
      if (bound) {
        push({.level = Level::pass, .bound = *bound, .point = point});
      } else {
        result_.counts.impossible += plans;
      }
    }
  }

  void go_on(const PlanPoint& layout, const LayoutResult& before) {
    result_ = before;
    for (const PlanPoint& point : space_.passes(layout)) {
      if (possible([&] { return &plan_.emplace(space_, space_.completed(point)); })) return;
    }
  }

  LayoutResult run() && {
    std::vector<Node>& open = result_.open;
    while (!open.empty() && !hopeless(open.front().value, open.front().bound) && !enough()) {
      std::pop_heap(open.begin(), open.end());
      const Node node = open.back();
      open.pop_back();
      look_into(node);
    }
    result_.bound = open.empty() ? std::numeric_limits<double>::infinity() : open.front().value;
    if (effort_ >= LayoutEffort::solve) open.clear();
    keep_best(result_.best, kept_);
    keep_best(result_.infeasible, most_infeasible);
    return std::move(result_);
  }

 private:
  using Node = LayoutNode;
  using Level = LayoutNode::Level;

  void push(Node node) {
    node.value = objective_.value(node.bound, node.memory);
    result_.open.push_back(node);
    std::push_heap(result_.open.begin(), result_.open.end());
  }
  [[nodiscard]] bool enough() const {
    const bool fits = result_.open.front().level == Level::plan;
    return effort_ == LayoutEffort::outline || (effort_ == LayoutEffort::refine && fits);
  }
  void look_into(const Node& node) {
    switch (node.level) {
      case Level::pass:
        return pipelines(node);
      case Level::pipeline:
        return shardings(node);
      case Level::sharding:
        return synchronisations(node);
      case Level::plan:
        return estimate(node);
    }
  }
  static void keep_best(std::vector<PlanCandidate>& plans, std::size_t most) {
    std::sort(plans.begin(), plans.end());
    if (plans.size() > most) plans.resize(most);
  }
  [[nodiscard]] bool hopeless(Seconds bound) const { return hopeless(objective_.value(bound, Bytes(0.0)), bound); }
  [[nodiscard]] bool hopeless(double value, Seconds bound) const {
    return effort_ != LayoutEffort::enumerate && (bar_.is_above(value) || bound * (1.0 - rounding) > objective_.limit);
  }

  void pipelines(const Node& node) {
    for (const PlanPoint& point : space_.pipelinings(node.point)) {
      if (const auto fits = possible([&] { return any_states_fit(point); }); fits && !*fits) {
        for (const PlanPoint& sharded : space_.shardings(point)) {
          result_.counts.unfit += std::ssize(space_.synchronisations(sharded));
        }
        continue;
      }
      const auto bound = least_of_shardings(point);
      if (!bound) continue;
      const Seconds least = std::max(*bound, node.bound);
      if (!hopeless(least)) push({.level = Level::pipeline, .bound = least, .point = point});
    }
  }

  /// With weights whole and with weights divided, nothing on the host. Nothing where neither is possible.
  std::optional<Seconds> least_of_shardings(const PlanPoint& point) {
    std::array<std::optional<Seconds>, 2> least;
    for (const PlanPoint& sharded : space_.shardings(point)) {
      std::optional<Seconds>& known = least[sharded.zero == 3 ? 1 : 0];
      if (known) continue;
      known = possible([&] {
        plan_->take(space_.synchronisations(sharded).front());
        return plan_->least_passes_bound();
      });
    }
    return least[0] && least[1] ? std::min(*least[0], *least[1]) : least[0] ? least[0] : least[1];
  }

  /// Weights, gradients and the optimizer's states, in one of the ways to divide them.
  bool any_states_fit(const PlanPoint& point) {
    return std::ranges::any_of(space_.shardings(point), [&](const PlanPoint& sharded) {
      plan_->take(space_.synchronisations(sharded).front());
      return plan_->states_fit();
    });
  }

  void shardings(const Node& node) {
    for (const PlanPoint& sharded : space_.shardings(node.point)) {
      const std::vector<PlanPoint> plans = space_.synchronisations(sharded);
      const auto fits = possible([&] { return fit(plans, node.bound); });
      if (!fits) result_.counts.impossible += std::ssize(plans);
      if (fits && !*fits) result_.counts.unfit += std::ssize(plans);
    }
  }

  /// Whether any plan of a sharding may fit; true as well if none can be among the best.
  bool fit(const std::vector<PlanPoint>& plans, Seconds bound) {
    const PlanPoint& point = plans.front();
    plan_->take(point);
    PassTimes least = plan_->passes();
    // If servers may update, by keys, no rank has to.
    if (std::ranges::any_of(plans, &PlanPoint::pushes_keys)) least.updates.clear();
    bound = std::max(bound, plan_->bound(least));
    if (hopeless(bound)) return true;
    const MemoryFootprint memory = plan_->least_memory();
    if (memory.fits()) {
      push({.level = Level::sharding, .bound = bound, .point = point, .memory = memory.total()});
    } else {
      miss(point, bound, memory);
    }
    return memory.fits();
  }

  void synchronisations(const Node& node) {
    plan_->take(node.point);
    const PassTimes passes = plan_->passes();
    for (const PlanPoint& point : space_.synchronisations(node.point)) {
      const auto fits = possible([&] { return fit(point, node.bound, passes); });
      if (!fits) ++result_.counts.impossible;
      if (fits && !*fits) ++result_.counts.unfit;
    }
  }

  /// The same for a whole plan.
  bool fit(const PlanPoint& point, Seconds bound, const PassTimes& passes) {
    plan_->take(point);
    if (const auto ends = plan_->ends()) bound = std::max(bound, plan_->bound(passes, &*ends));
    if (hopeless(bound)) return true;
    const MemoryFootprint memory = plan_->memory();
    if (memory.fits()) {
      push({.level = Level::plan, .bound = bound, .point = point, .memory = memory.total()});
    } else {
      miss(point, bound, memory);
    }
    return memory.fits();
  }

  void estimate(const Node& node) {
    Seconds bound = node.bound;
    const auto estimate = possible([&] {
      plan_->take(node.point);
      return plan_->estimate([&](Seconds of_blocks) {
        bound = std::max(bound, of_blocks);
        return hopeless(objective_.value(bound, node.memory), bound);
      });
    });
    if (!estimate) {
      ++result_.counts.impossible;
      return;
    }
    if (!*estimate) return;
    const Seconds step = **estimate;
    ++result_.counts.estimated;
    if (bound * (1.0 - rounding) > step) ++result_.counts.exceeded;
    if (step > objective_.limit) return;
    const double value = objective_.value(step, node.memory);
    result_.best.push_back({node.point, 0, value, step, node.memory, space_.example().cluster.node.gpu.memory});
    bar_.add(value);
    if (result_.best.size() >= 4 * kept_) keep_best(result_.best, kept_);
  }

  void miss(const PlanPoint& point, Seconds bound, const MemoryFootprint& memory) {
    if (!memory.fits_host()) return;  // a lack of GPU memory is easier to see
    result_.infeasible.push_back(
        {point, 0, objective_.value(bound, memory.total()), bound, memory.total(), memory.capacity});
    if (result_.infeasible.size() >= 64) keep_best(result_.infeasible, most_infeasible);
  }

  const PlanSpace& space_;
  PlanObjective objective_;
  std::optional<Candidate> plan_;
  Bar bar_;
  std::size_t kept_;
  LayoutEffort effort_;
  LayoutResult result_;
};

}  // namespace

PlanCounts& PlanCounts::operator+=(const PlanCounts& other) {
  plans += other.plans;
  estimated += other.estimated;
  unfit += other.unfit;
  impossible += other.impossible;
  exceeded += other.exceeded;
  return *this;
}

LayoutResult search_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                           const std::vector<double>& known, std::size_t kept, LayoutEffort effort,
                           const LayoutResult& before) {
  LayoutSearch search(space, objective, known, kept, effort);
  before.counts.plans > 0 ? search.go_on(layout, before) : search.begin(layout);
  return std::move(search).run();
}

}  // namespace foretrain
