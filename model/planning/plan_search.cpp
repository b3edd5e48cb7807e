#include "model/planning/plan_search.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/base/bytestream.hpp"

namespace foretrain {

namespace {

constexpr std::size_t outlined_at_once = 4096, refined_at_once = 64, settled_at_once = 16, misses_told = 3;

struct LayoutTask {
  int space = 0;
  const PlanPoint* layout = nullptr;
  double bound = std::numeric_limits<double>::infinity();
  std::int64_t plans = 0;
  bool refined = false;
};

/// A search's rounds: what it asks of other processes, and what becomes of their answers.
class Rounds {
 public:
  Rounds(const std::vector<PlanSpace>& spaces, const std::vector<PlanObjective>& objectives, std::size_t kept,
         const RunTasks& run_tasks, const std::function<void(const PlanSearch&)>& progress, PlanSearch& search)
      : spaces_(spaces),
        objectives_(objectives),
        kept_(kept),
        run_tasks_(run_tasks),
        progress_(progress),
        search_(search) {
    for (std::size_t space = 0; space < spaces.size(); ++space) {
      for (const PlanPoint& layout : spaces[space].layouts()) open_.push_back({static_cast<int>(space), &layout});
    }
    search.layouts = open_.size();
    outline();
  }

  /// False where nothing is left to look into.
  bool next() {
    std::erase_if(open_, [](const LayoutTask& task) { return task.plans == 0; });
    std::ranges::stable_sort(open_, {}, &LayoutTask::bound);
    if (!search_.complete || open_.empty()) return false;
    if (hopeless(open_.front())) {
      for (const LayoutTask& task : open_) search_.counts.plans += task.plans;
      return false;
    }
    // Without a bar all would be refined to the end: the most promising of the refined give one.
    if (open_.front().refined || (known_.size() < kept_ && move_refined_to_front())) {
      settle();
    } else {
      refine();
    }
    note_work();
    progress_(search_);
    return true;
  }

 private:
  [[nodiscard]] bool hopeless(const LayoutTask& task) const {
    return known_.size() == kept_ && task.bound * (1.0 - 1e-9) > known_.back();
  }

  /// After a round: the bar, and what is left to do by it.
  void note_work() {
    known_.clear();
    for (const PlanCandidate& candidate : search_.best) known_.push_back(candidate.value);
    PlanSearch::Work& work = search_.work;
    work.to_refine = 0;
    double left = 0.0, settled = 0.0;
    const auto below_bar = [this](double bound) { return std::max(1.0 - bound / known_.back(), 1e-6); };
    for (const LayoutTask& task : open_) {
      if (task.plans == 0 || hopeless(task)) continue;
      if (!task.refined) ++work.to_refine;
      if (task.refined && !known_.empty()) left += below_bar(task.bound);
    }
    if (known_.empty() || settled_bounds_.empty()) return;
    for (const double bound : settled_bounds_) settled += below_bar(bound);
    work.left_to_settle = left / settled;
  }

  /// False where there are none.
  bool move_refined_to_front() {
    std::ranges::stable_partition(open_, &LayoutTask::refined);
    return open_.front().refined;
  }

  /// Calls take(task, answer's bytes) for each task, in their order, where there is an answer.
  template <typename Answer, typename Take>
  void ask(const std::vector<LayoutTask*>& tasks, const Answer& answer, const Take& take) {
    const std::vector<std::string> answers = run_tasks_(tasks.size(), [&](std::size_t i) {
      const auto space = static_cast<std::size_t>(tasks[i]->space);
      Bytestream bytes;
      answer(*tasks[i], spaces_[space], objectives_[space], bytes);
      return std::move(bytes).text();
    });
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (answers[i].empty()) {
        search_.complete = false;
        continue;
      }
      Bytestream bytes(answers[i]);
      take(*tasks[i], bytes);
    }
  }

  void outline() {
    for (std::size_t first = 0; first < open_.size() && search_.complete; first += outlined_at_once) {
      std::vector<LayoutTask*> some;
      for (std::size_t i = first; i < std::min(first + outlined_at_once, open_.size()); ++i) some.push_back(&open_[i]);
      outline(some);
      search_.work.outlined += some.size();
      progress_(search_);
    }
  }

  void outline(const std::vector<LayoutTask*>& some) {
    ask(
        some,
        [&](const LayoutTask& task, const PlanSpace& space, const PlanObjective& objective, Bytestream& bytes) {
          bytes.put(std::vector{layout_bound(space, *task.layout, objective)});
          bytes.put(std::vector{plans_in(space, *task.layout)});
        },
        [&](LayoutTask& task, Bytestream& bytes) {
          task.bound = bytes.take<double>().front();
          task.plans = bytes.take<std::int64_t>().front();
          search_.plans += task.plans;
        });
  }

  /// Those that are most promising by their kernels alone. Where there is no bar, some plans of each give one.
  void refine() {
    const std::size_t estimates = known_.size() < kept_ ? kept_ / refined_at_once + 1 : 0;
    std::vector<LayoutTask*> tasks;
    for (LayoutTask& task : open_) {
      if (tasks.size() < refined_at_once && !task.refined && !hopeless(task)) tasks.push_back(&task);
    }
    std::ranges::sort(tasks, {}, [](const LayoutTask* task) { return std::pair(task->space, task->layout); });
    ask(
        tasks,
        [&](const LayoutTask& task, const PlanSpace& space, const PlanObjective& objective, Bytestream& bytes) {
          LayoutOutline outline = refine_layout(space, *task.layout, objective, known_, kept_, estimates);
          bytes.put(std::vector{outline.bound});
          bytes.put(outline.best);
          bytes.put(outline.misses);
        },
        [&](LayoutTask& task, Bytestream& bytes) {
          task.bound = std::max(task.bound, bytes.take<double>().front());
          task.refined = true;
          ++search_.work.refined;
          merge(search_.best, bytes.take<PlanCandidate>(), task.space, kept_);
          merge(search_.misses, bytes.take<PlanCandidate>(), task.space, misses_told);
        });
  }

  void settle() {
    std::vector<LayoutTask*> tasks;
    for (LayoutTask& task : open_) {
      if (tasks.size() == settled_ || !task.refined || hopeless(task)) break;
      tasks.push_back(&task);
    }
    settled_ = std::min(2 * settled_, settled_at_once);
    ask(
        tasks,
        [&](const LayoutTask& task, const PlanSpace& space, const PlanObjective& objective, Bytestream& bytes) {
          const LayoutResult result = settle_layout(space, *task.layout, objective, known_beside(task), kept_);
          bytes.put(std::vector{result.counts});
          bytes.put(result.best);
          bytes.put(result.misses);
        },
        [&](LayoutTask& task, Bytestream& bytes) {
          search_.counts += bytes.take<PlanCounts>().front();
          merge(search_.best, bytes.take<PlanCandidate>(), task.space, kept_);
          merge(search_.misses, bytes.take<PlanCandidate>(), task.space, misses_told);
          settled_bounds_.push_back(task.bound);
          search_.counts.plans += std::exchange(task.plans, 0);
          ++search_.work.settled;
        });
  }

  /// The values of the best plans of other layouts.
  [[nodiscard]] std::vector<double> known_beside(const LayoutTask& task) const {
    std::vector<double> known;
    for (const PlanCandidate& candidate : search_.best) {
      if (candidate.space != task.space || !candidate.point.is_of(*task.layout)) known.push_back(candidate.value);
    }
    return known;
  }

  /// Takes up the better ones.
  static void merge(std::vector<PlanCandidate>& all, std::vector<PlanCandidate> more, int space, std::size_t kept) {
    for (PlanCandidate& candidate : more) candidate.space = space;
    all.insert(all.end(), more.begin(), more.end());
    std::sort(all.begin(), all.end());
    const auto same = [](const PlanCandidate& a, const PlanCandidate& b) {
      return a.space == b.space && a.point == b.point;
    };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    if (all.size() > kept) all.resize(kept);
  }

  const std::vector<PlanSpace>& spaces_;
  const std::vector<PlanObjective>& objectives_;
  std::size_t kept_;
  const RunTasks& run_tasks_;
  const std::function<void(const PlanSearch&)>& progress_;
  PlanSearch& search_;
  std::vector<LayoutTask> open_;
  std::vector<double> known_;
  std::vector<double> settled_bounds_;
  std::size_t settled_ = 1;  ///< layouts in the next round: the first one's plans are the bar for others
};

}  // namespace

std::vector<std::string> run_tasks_here(std::size_t count, const std::function<std::string(std::size_t)>& task) {
  std::vector<std::string> answers;
  answers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) answers.push_back(task(i));
  return answers;
}

PlanSearch search_plans(const std::vector<PlanSpace>& spaces, const std::vector<PlanObjective>& objectives,
                        std::size_t kept, const RunTasks& run_tasks,
                        const std::function<void(const PlanSearch&)>& progress) {
  PlanSearch search;
  Rounds rounds(spaces, objectives, kept, run_tasks, progress, search);
  while (rounds.next()) {
  }
  return search;
}

}  // namespace foretrain
