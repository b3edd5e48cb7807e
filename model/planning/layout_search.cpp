#include "model/planning/layout_search.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <utility>

#include "model/base/error.hpp"
#include "model/planning/candidate.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_misses = 3;
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
  LayoutSearch(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
               const std::vector<double>& known, std::size_t kept, bool bounded)
      : space_(space), objective_(objective), bar_(known, kept), kept_(kept), bounded_(bounded) {
    for (const PlanPoint& point : space.passes(layout)) {
      const auto bound = possible([&] {
        const PlanPoint completed = space.completed(point);
        if (!plan_) plan_.emplace(space, completed);
        plan_->take(completed);
        return plan_->kernels_bound();
      });
      if (bound) {
        push(Level::pass, *bound, point);
      } else {
        result_.counts.impossible += space.plans_of(point);
      }
    }
  }

  /// Of kernels alone.
  [[nodiscard]] double least_bound() const {
    if (open_.empty()) return infinity;
    return open_.top().value;
  }

  /// Until the most promising plan is one that fits, gradients apart, and `estimates` plans are estimated.
  LayoutOutline refine(std::size_t estimates) && {
    look_into_all([&] { return result_.best.size() >= estimates && open_.top().level >= Level::fitting; });
    const double left = least_bound();
    LayoutResult result = std::move(*this).result();
    const double bound = result.best.empty() ? left : std::min(left, result.best.front().value);
    return {bound, std::move(result.best), std::move(result.misses)};
  }

  LayoutResult run() && {
    look_into_all([] { return false; });
    return std::move(*this).result();
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  /// What is decided. Of what fits, its memory is known.
  enum class Level { pass, pipeline, sharding, fitting, plan };
  struct Node {
    Level level = Level::pass;
    double value = 0.0;  ///< that no plan below is better than
    Seconds bound;
    Bytes memory;
    PlanPoint point;
    std::shared_ptr<const PassTimes> passes;  ///< from its sharding to its synchronisation
    /// The most promising first; of equals the one of which more is decided.
    friend bool operator<(const Node& a, const Node& b) {
      if (a.value != b.value) return a.value > b.value;
      if (a.level != b.level) return a.level < b.level;
      return a.point > b.point;
    }
  };

  void push(Level level, Seconds bound, const PlanPoint& point, Bytes memory = Bytes(0.0),
            std::shared_ptr<const PassTimes> passes = nullptr) {
    open_.push({level, objective_.value(bound, memory), bound, memory, point, std::move(passes)});
  }
  /// That may hold one of the best plans, until enough() says so.
  void look_into_all(const auto& enough) {
    while (!open_.empty() && !hopeless(open_.top()) && !enough()) {
      const Node node = open_.top();
      open_.pop();
      look_into(node);
    }
  }
  void look_into(const Node& node) {
    switch (node.level) {
      case Level::pass:
        return pipelines(node);
      case Level::pipeline:
        return shardings(node);
      case Level::sharding:
        return fit(node);
      case Level::fitting:
        return synchronisations(node);
      case Level::plan:
        return estimate(node);
    }
  }
  [[nodiscard]] LayoutResult result() && {
    std::sort(result_.best.begin(), result_.best.end());
    if (result_.best.size() > kept_) result_.best.resize(kept_);
    std::sort(result_.misses.begin(), result_.misses.end());
    if (result_.misses.size() > most_misses) result_.misses.resize(most_misses);
    return std::move(result_);
  }
  [[nodiscard]] bool hopeless(const Node& node) const { return hopeless(node.value, node.bound); }
  [[nodiscard]] bool hopeless(double value, Seconds bound) const {
    return bounded_ && (bar_.is_above(value) || bound * (1.0 - rounding) > objective_.limit);
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
      if (!hopeless(objective_.value(least, Bytes(0.0)), least)) push(Level::pipeline, least, point);
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
      const std::vector<PlanPoint> below = space_.synchronisations(sharded);
      const PlanPoint& point = below.front();
      const auto passes = possible([&] {
        plan_->take(point);
        return std::make_shared<const PassTimes>(plan_->passes());
      });
      if (!passes) {
        result_.counts.impossible += std::ssize(below);
        continue;
      }
      const Seconds bound = std::max(node.bound, plan_->bound(without_servers(point, **passes)));
      if (!hopeless(objective_.value(bound, Bytes(0.0)), bound)) push(Level::sharding, bound, point, {}, *passes);
    }
  }

  /// Where servers may update, by keys, no rank has to.
  [[nodiscard]] PassTimes without_servers(const PlanPoint& point, PassTimes passes) const {
    if (std::ranges::any_of(space_.synchronisations(point), &PlanPoint::pushes_keys)) passes.updates.clear();
    return passes;
  }

  void fit(const Node& node) {
    Seconds bound;
    const auto memory = possible([&] {
      plan_->take(node.point);
      const PassTimes passes = without_servers(node.point, *node.passes);
      bound = std::max(node.bound, plan_->bound(passes, plan_->walk(passes), nullptr));
      return plan_->least_memory();
    });
    if (memory && hopeless(objective_.value(bound, Bytes(0.0)), bound)) return;
    if (memory && memory->fits()) return push(Level::fitting, bound, node.point, memory->total(), node.passes);
    (memory ? result_.counts.unfit : result_.counts.impossible) += std::ssize(space_.synchronisations(node.point));
    if (memory) miss(node.point, node.bound, *memory);
  }

  void synchronisations(const Node& node) {
    plan_->take(node.point);
    const std::optional<PipelineWalk> walk = plan_->walk(*node.passes);
    for (const PlanPoint& point : space_.synchronisations(node.point)) {
      if (!possible([&] { return take_up(point, node, walk); })) ++result_.counts.impossible;
    }
  }

  bool take_up(const PlanPoint& point, const Node& node, const std::optional<PipelineWalk>& walk) {
    plan_->take(point);
    Seconds bound = node.bound;
    if (const auto ends = plan_->ends()) bound = std::max(bound, plan_->bound(*node.passes, walk, &*ends));
    if (hopeless(objective_.value(bound, Bytes(0.0)), bound)) return true;
    const MemoryFootprint memory = plan_->memory();
    if (memory.fits()) {
      push(Level::plan, bound, point, memory.total());
    } else {
      ++result_.counts.unfit;
      miss(point, bound, memory);
    }
    return true;
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
    result_.best.push_back({node.point, 0, objective_.value(step, node.memory), step, node.memory,
                            space_.example().cluster.node.gpu.memory});
    bar_.add(result_.best.back().value);
    if (result_.best.size() < 4 * kept_) return;
    std::sort(result_.best.begin(), result_.best.end());
    result_.best.resize(kept_);
  }

  void miss(const PlanPoint& point, Seconds bound, const MemoryFootprint& memory) {
    if (!memory.fits_host()) return;  // what the GPU lacks is easier to see
    result_.misses.push_back(
        {point, 0, objective_.value(bound, memory.total()), bound, memory.total(), memory.capacity});
    if (result_.misses.size() < 64) return;
    std::sort(result_.misses.begin(), result_.misses.end());
    result_.misses.resize(most_misses);
  }

  const PlanSpace& space_;
  PlanObjective objective_;
  std::optional<Candidate> plan_;
  Bar bar_;
  std::size_t kept_;
  bool bounded_;
  std::priority_queue<Node> open_;
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

double layout_bound(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective) {
  return LayoutSearch(space, layout, objective, {}, 1, true).least_bound();
}

std::int64_t plans_in(const PlanSpace& space, const PlanPoint& layout) {
  std::int64_t plans = 0;
  for (const PlanPoint& point : space.passes(layout)) plans += space.plans_of(point);
  return plans;
}

LayoutOutline refine_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                            const std::vector<double>& known, std::size_t kept, std::size_t estimates) {
  return LayoutSearch(space, layout, objective, known, kept, true).refine(estimates);
}

LayoutResult settle_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                           const std::vector<double>& known, std::size_t kept) {
  return LayoutSearch(space, layout, objective, known, kept, true).run();
}

LayoutResult enumerate_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                              std::size_t kept) {
  LayoutResult result = LayoutSearch(space, layout, objective, {}, kept, false).run();
  result.counts.plans = plans_in(space, layout);
  return result;
}

}  // namespace foretrain
