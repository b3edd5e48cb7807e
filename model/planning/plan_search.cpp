#include "model/planning/plan_search.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace foretrain {

namespace {

constexpr std::size_t largest_round = 32, misses_told = 3;

/// Values as bytes, for the way between processes.
class Bytestream {
 public:
  Bytestream() = default;
  explicit Bytestream(std::string bytes) : bytes_(std::move(bytes)) {}
  template <typename T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t count = values.size();
    bytes_.append(reinterpret_cast<const char*>(&count), sizeof count);
    if (count > 0) bytes_.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
  }
  template <typename T>
  std::vector<T> take() {
    std::size_t count = 0;
    std::memcpy(&count, bytes_.data() + at_, sizeof count);
    at_ += sizeof count;
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return values;
  }
  [[nodiscard]] std::string text() && { return std::move(bytes_); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

struct LayoutTask {
  int space = 0;
  const PlanPoint* layout = nullptr;
  double bound = std::numeric_limits<double>::infinity();
  std::int64_t plans = 0;
};

std::string outline(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective) {
  Bytestream bytes;
  bytes.put(std::vector{layout_bound(space, layout, objective)});
  bytes.put(std::vector{plans_in(space, layout)});
  return std::move(bytes).text();
}

std::string settled(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                    const std::vector<double>& known, std::size_t kept) {
  const LayoutResult result = settle_layout(space, layout, objective, known, kept);
  Bytestream bytes;
  bytes.put(std::vector{result.counts});
  bytes.put(result.best);
  bytes.put(result.misses);
  return std::move(bytes).text();
}

/// Takes up the better ones; false where there are none.
void merge(std::vector<PlanCandidate>& all, std::vector<PlanCandidate> more, int space, std::size_t kept) {
  for (PlanCandidate& candidate : more) candidate.space = space;
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
  if (all.size() > kept) all.resize(kept);
}

std::vector<LayoutTask> tasks_of(const std::vector<PlanSpace>& spaces, const std::vector<PlanObjective>& objectives,
                                 const RunTasks& run_tasks, PlanSearch& search) {
  std::vector<LayoutTask> tasks;
  for (std::size_t space = 0; space < spaces.size(); ++space) {
    for (const PlanPoint& layout : spaces[space].layouts()) tasks.push_back({static_cast<int>(space), &layout});
  }
  const std::vector<std::string> outlines = run_tasks(tasks.size(), [&](std::size_t i) {
    const auto space = static_cast<std::size_t>(tasks[i].space);
    return outline(spaces[space], *tasks[i].layout, objectives[space]);
  });
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (outlines[i].empty()) {
      search.complete = false;
      continue;
    }
    Bytestream bytes(outlines[i]);
    tasks[i].bound = bytes.take<double>().front();
    tasks[i].plans = bytes.take<std::int64_t>().front();
    search.plans += tasks[i].plans;
  }
  search.layouts = tasks.size();
  std::ranges::stable_sort(tasks, {}, &LayoutTask::bound);
  return tasks;
}

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
  const std::vector<LayoutTask> tasks = tasks_of(spaces, objectives, run_tasks, search);
  std::size_t round = 1;
  for (std::size_t first = 0; first < tasks.size() && search.complete;) {
    std::vector<double> known;
    for (const PlanCandidate& candidate : search.best) known.push_back(candidate.value);
    if (known.size() == kept && tasks[first].bound * (1.0 - 1e-9) > known.back()) {
      for (; first < tasks.size(); ++first) search.counts.plans += tasks[first].plans;
      break;
    }
    const std::size_t count = std::min(round, tasks.size() - first);
    const std::vector<std::string> answers = run_tasks(count, [&](std::size_t i) {
      const LayoutTask& task = tasks[first + i];
      const auto space = static_cast<std::size_t>(task.space);
      return settled(spaces[space], *task.layout, objectives[space], known, kept);
    });
    for (std::size_t i = 0; i < count; ++i) {
      if (answers[i].empty()) {
        search.complete = false;
        continue;
      }
      Bytestream bytes(answers[i]);
      search.counts += bytes.take<PlanCounts>().front();
      merge(search.best, bytes.take<PlanCandidate>(), tasks[first + i].space, kept);
      merge(search.misses, bytes.take<PlanCandidate>(), tasks[first + i].space, misses_told);
    }
    first += count;
    round = std::min(2 * round, largest_round);
    if (progress) progress(search);
  }
  return search;
}

}  // namespace foretrain
