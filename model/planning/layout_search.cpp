#include "model/planning/layout_search.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <stdexcept>
#include <utility>

#include "model/base/error.hpp"
#include "model/planning/plan_blocks.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_misses = 3;
constexpr double rounding = 1e-9;

/// The values of the best plans known; the worst of them is what a plan has to beat.
class Bar {
 public:
  Bar(std::vector<double> known, std::size_t kept) : best_(std::move(known)), kept_(kept) {
    std::ranges::make_heap(best_);
    while (best_.size() > kept_) drop();
  }
  void add(double value) {
    best_.push_back(value);
    std::ranges::push_heap(best_);
    if (best_.size() > kept_) drop();
  }
  /// Ties pass: which of equal plans is kept, their points say.
  [[nodiscard]] bool is_above(double value) const {
    return best_.size() == kept_ && value * (1.0 - rounding) > best_.front();
  }

 private:
  void drop() {
    std::ranges::pop_heap(best_);
    best_.pop_back();
  }
  std::vector<double> best_;
  std::size_t kept_;
};

/// All points below a layout whose layers take something of their own.
std::vector<PlanPoint> points_of(const PlanSpace& space, const PlanPoint& layout) {
  std::vector<PlanPoint> points;
  PlanPoint point = layout;
  for (const int size : space.micro_batches(layout)) {
    for (const Recompute recompute : space.recomputes()) {
      for (const bool sequence_parallel : space.sequence_parallels(layout)) {
        point.micro_batch = size;
        point.recompute = recompute;
        point.sequence_parallel = sequence_parallel;
        points.push_back(point);
      }
    }
  }
  return points;
}

/// With the first of what is not decided yet, so that it can be read.
PlanPoint completed(const PlanSpace& space, PlanPoint point) {
  const auto all = space.pipelinings(point);
  if (all.empty()) return point;
  point.schedule = all.front().schedule;
  point.interleave = all.front().interleave;
  const PlanSpace::Sharding sharding = space.shardings(point).front();
  point.zero = sharding.zero;
  point.offload = sharding.offload;
  const PlanSpace::Synchronisation sync = space.synchronisations(point).front();
  point.algorithm = sync.algorithm;
  point.bucket = sync.bucket;
  point.overlap = sync.overlap;
  return point;
}

class LayoutSearch {
 public:
  LayoutSearch(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
               std::vector<double> known, std::size_t kept, bool bounded)
      : space_(space), objective_(objective), bar_(std::move(known), kept), kept_(kept), bounded_(bounded) {
    for (const PlanPoint& point : points_of(space, layout)) {
      result_.counts.plans += space.plans_of(point);
      const auto bound = possible([&] {
        if (!blocks_) blocks_.emplace(space, completed(space, point));
        blocks_->take(completed(space_, point));
        return blocks_->kernels_bound();
      });
      if (bound) {
        push(Level::pass, *bound, point);
      } else {
        result_.counts.impossible += space.plans_of(point);
      }
    }
  }

  /// With what passes and their pipeline take.
  [[nodiscard]] double least_bound() {
    while (!open_.empty() && open_.top().level == Level::pass) {
      const Node node = open_.top();
      open_.pop();
      pipelines(node);
    }
    return open_.empty() ? infinity : open_.top().value;
  }

  LayoutResult run() && {
    while (!open_.empty()) {
      const Node node = open_.top();
      open_.pop();
      if (hopeless(node.value, node.bound)) break;
      switch (node.level) {
        case Level::pass:
          pipelines(node);
          break;
        case Level::pipeline:
          shardings(node);
          break;
        case Level::sharding:
          synchronisations(node);
          break;
      }
    }
    std::sort(result_.best.begin(), result_.best.end());
    if (result_.best.size() > kept_) result_.best.resize(kept_);
    std::sort(result_.misses.begin(), result_.misses.end());
    if (result_.misses.size() > most_misses) result_.misses.resize(most_misses);
    return std::move(result_);
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  /// What is decided.
  enum class Level { pass, pipeline, sharding };
  struct Node {
    Level level = Level::pass;
    double value = 0.0;  ///< that no plan below is better than
    Seconds bound;
    PlanPoint point;
    /// The most promising first; of equals the one of which more is decided.
    friend bool operator<(const Node& a, const Node& b) {
      if (a.value != b.value) return a.value > b.value;
      if (a.level != b.level) return a.level < b.level;
      return a.point > b.point;
    }
  };

  void push(Level level, Seconds bound, const PlanPoint& point, Bytes memory = Bytes(0.0)) {
    open_.push({level, objective_.value(bound, memory), bound, point});
  }
  [[nodiscard]] bool hopeless(double value, Seconds bound) const {
    return bounded_ && (bar_.is_above(value) || bound * (1.0 - rounding) > objective_.limit);
  }

  /// What the work says, or nothing where the plan turns out to be impossible.
  template <typename Work>
  auto possible(const Work& work) -> std::optional<decltype(work())> {
    try {
      return work();
    } catch (const ScenarioError&) {
    } catch (const UsageError&) {
    } catch (const std::invalid_argument&) {
    }
    return std::nullopt;
  }

  void pipelines(const Node& node) {
    PlanPoint point = node.point;
    for (const auto& [schedule, interleave] : space_.pipelinings(point)) {
      point.schedule = schedule;
      point.interleave = interleave;
      const auto bound = possible([&] {
        PlanPoint first = completed(space_, node.point);
        first.schedule = schedule;
        first.interleave = interleave;
        blocks_->take(first);
        return blocks_->passes_bound(true);
      });
      if (!bound) continue;
      const Seconds least = std::max(*bound, node.bound);
      if (!hopeless(objective_.value(least, Bytes(0.0)), least)) push(Level::pipeline, least, point);
    }
  }

  void shardings(const Node& node) {
    PlanPoint point = node.point;
    for (const auto& [zero, offload] : space_.shardings(point)) {
      point.zero = zero;
      point.offload = offload;
      const std::vector<PlanSpace::Synchronisation> below = space_.synchronisations(point);
      point.algorithm = below.front().algorithm;
      point.bucket = below.front().bucket;
      point.overlap = below.front().overlap;
      const auto count = static_cast<std::int64_t>(below.size());
      Seconds bound = node.bound;
      MemoryFootprint memory;
      const bool is_possible = possible([&] {
                                 blocks_->take(point);
                                 memory = blocks_->least_memory();
                                 bound = std::max(bound, blocks_->passes_bound(false));
                                 return true;
                               }).value_or(false);
      if (!is_possible) {
        result_.counts.impossible += count;
      } else if (!memory.fits()) {
        result_.counts.unfit += count;
        miss(point, bound, memory);
      } else if (!hopeless(objective_.value(bound, memory.total()), bound)) {
        push(Level::sharding, bound, point, memory.total());
      }
    }
  }

  void synchronisations(const Node& node) {
    PlanPoint point = node.point;
    const auto least = possible([&] {
      blocks_->take(point);
      return std::max(node.bound, blocks_->ends_bound(true));
    });
    if (least && hopeless(node.value + objective_.value(*least - node.bound, Bytes(0.0)), *least)) return;
    for (const auto& [algorithm, bucket, overlap] : space_.synchronisations(point)) {
      point.algorithm = algorithm;
      point.bucket = bucket;
      point.overlap = overlap;
      if (!possible([&] { return settle(point, least.value_or(node.bound)); })) ++result_.counts.impossible;
    }
  }

  bool settle(const PlanPoint& point, Seconds bound) {
    blocks_->take(point);
    const MemoryFootprint memory = blocks_->memory();
    if (!memory.fits()) {
      ++result_.counts.unfit;
      miss(point, bound, memory);
      return true;
    }
    Seconds last = std::max(bound, blocks_->ends_bound(false));
    if (hopeless(objective_.value(last, memory.total()), last)) return true;
    const PlanBlocks::Time time = blocks_->time([&](Seconds of_step) {
      last = std::max(last, of_step);
      return hopeless(objective_.value(of_step, memory.total()), of_step);
    });
    if (!time.estimated) return true;
    ++result_.counts.estimated;
    if (last * (1.0 - rounding) > time.step) ++result_.counts.exceeded;
    if (time.step > objective_.limit) return true;
    PlanCandidate found{point,          0, objective_.value(time.step, memory.total()), time.step, memory.total(),
                        memory.capacity};
    bar_.add(found.value);
    result_.best.push_back(found);
    if (result_.best.size() >= 4 * kept_) {
      std::sort(result_.best.begin(), result_.best.end());
      result_.best.resize(kept_);
    }
    return true;
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
  std::optional<PlanBlocks> blocks_;
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
  for (const PlanPoint& point : points_of(space, layout)) plans += space.plans_of(point);
  return plans;
}

LayoutResult settle_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                           std::vector<double> known, std::size_t kept) {
  return LayoutSearch(space, layout, objective, std::move(known), kept, true).run();
}

LayoutResult enumerate_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                              std::size_t kept) {
  return LayoutSearch(space, layout, objective, {}, kept, false).run();
}

}  // namespace foretrain
