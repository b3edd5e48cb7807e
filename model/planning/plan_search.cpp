#include "model/planning/plan_search.hpp"

#include <algorithm>
#include <utility>

#include "model/base/bytestream.hpp"

namespace foretrain {

namespace {

constexpr std::size_t outlined_at_once = 4096, refined_at_once = 64, settled_at_once = 16, infeasible_shown = 3;

std::string bytes_of(const LayoutResult& result) {
  Bytestream bytes;
  bytes.put(std::vector{result.bound});
  bytes.put(result.open);
  bytes.put(std::vector{result.counts});
  bytes.put(result.best);
  bytes.put(result.infeasible);
  return std::move(bytes).text();
}

LayoutResult layout_result(const std::string& text) {
  Bytestream bytes(text);
  return {bytes.take<double>().front(), bytes.take<LayoutNode>(), bytes.take<PlanCounts>().front(),
          bytes.take<PlanCandidate>(), bytes.take<PlanCandidate>()};
}

struct LayoutTask {
  int space = 0;
  const PlanPoint* layout = nullptr;
  LayoutEffort effort = LayoutEffort::outline;  ///< that went into what was found
  LayoutResult found;

  [[nodiscard]] double bound() const { return found.bound; }
  [[nodiscard]] bool refined() const { return effort == LayoutEffort::refine; }
};

/// A search's rounds: what it asks of other processes, and what becomes of their answers.
class Rounds {
 public:
  Rounds(const std::vector<PlanSpace>& spaces, const std::vector<PlanObjective>& objectives, std::size_t kept,
         const RunTasks& run_tasks, PlanSearch& search)
      : spaces_(spaces), objectives_(objectives), kept_(kept), run_tasks_(run_tasks), search_(search) {
    for (std::size_t space = 0; space < spaces.size(); ++space) {
      for (const PlanPoint& layout : spaces[space].layouts())
        open_.push_back({static_cast<int>(space), &layout, LayoutEffort::outline, {}});
    }
    search.layouts = open_.size();
    for (std::size_t first = 0; first < open_.size() && search_.complete; first += outlined_at_once) {
      std::vector<LayoutTask*> some;
      for (std::size_t i = first; i < std::min(first + outlined_at_once, open_.size()); ++i) some.push_back(&open_[i]);
      look_into(some, LayoutEffort::outline);
    }
  }

  /// False where nothing is left to look into.
  bool next() {
    std::erase_if(open_, [](const LayoutTask& task) { return task.effort == LayoutEffort::solve; });
    std::ranges::stable_sort(open_, {}, &LayoutTask::bound);
    search_.settled = search_.layouts;
    for (const LayoutTask& task : open_) search_.settled -= is_hopeless(task) ? 0 : 1;
    if (!search_.complete || open_.empty()) return false;
    if (is_hopeless(open_.front())) {
      for (const LayoutTask& task : open_) search_.counts.plans += task.found.counts.plans;
      return false;
    }
    // Without a bar all would be refined to the end: the most promising of the refined give one.
    if (known_.size() < kept_) std::ranges::stable_partition(open_, &LayoutTask::refined);
    if (open_.front().refined()) {
      look_into(most_promising(settled_at_once_), LayoutEffort::solve);
      settled_at_once_ = std::min(2 * settled_at_once_, settled_at_once);
    } else {
      look_into(most_promising(refined_at_once), LayoutEffort::refine);
    }
    return true;
  }

 private:
  [[nodiscard]] bool is_hopeless(const LayoutTask& task) const {
    return known_.size() == kept_ && task.bound() * (1.0 - 1e-9) > known_.back();
  }

  /// Layouts from the front on with equal knowledge.
  [[nodiscard]] std::vector<LayoutTask*> most_promising(std::size_t most) {
    const bool refined = open_.front().refined();
    std::vector<LayoutTask*> tasks;
    for (LayoutTask& task : open_) {
      if (tasks.size() == most || is_hopeless(task) || (refined && !task.refined())) break;
      if (task.refined() == refined) tasks.push_back(&task);
    }
    std::ranges::sort(tasks, {}, [](const LayoutTask* task) { return std::pair(task->space, task->layout); });
    return tasks;
  }

  void look_into(const std::vector<LayoutTask*>& tasks, LayoutEffort effort) {
    const std::vector<std::string> answers = run_tasks_(tasks.size(), [&](std::size_t i) {
      const auto space = static_cast<std::size_t>(tasks[i]->space);
      return bytes_of(
          search_layout(spaces_[space], *tasks[i]->layout, objectives_[space], known_, kept_, effort, tasks[i]->found));
    });
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (answers[i].empty()) {
        search_.complete = false;
        continue;
      }
      LayoutTask& task = *tasks[i];
      task.effort = effort;
      task.found = layout_result(answers[i]);
      if (effort == LayoutEffort::outline) search_.plans += task.found.counts.plans;
      if (effort == LayoutEffort::solve) search_.counts += task.found.counts;
      merge(search_.best, std::exchange(task.found.best, {}), task.space, kept_);
      merge(search_.infeasible, std::exchange(task.found.infeasible, {}), task.space, infeasible_shown);
    }
    known_.clear();
    for (const PlanCandidate& candidate : search_.best) known_.push_back(candidate.value);
  }

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
  PlanSearch& search_;
  std::vector<LayoutTask> open_;
  std::vector<double> known_;
  std::size_t settled_at_once_ = 1;  ///< the first one's plans are the bar for others
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
  Rounds rounds(spaces, objectives, kept, run_tasks, search);
  while (rounds.next()) progress(search);
  return search;
}

}  // namespace foretrain
