#include "validate/host_replay/worker_step.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "model/base/files.hpp"
#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

namespace {

std::string spans_file(const std::string& folder, int process) {
  return folder + "/spans-" + std::to_string(process) + ".json";
}

/// By step and task: when it began, and when it ended.
using Moments = std::vector<std::vector<std::array<double, 2>>>;

void sleep_until(double moment) {
  const auto whole = static_cast<std::time_t>(moment);
  const timespec date{whole, static_cast<long>((moment - number(whole)) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &date, nullptr) == EINTR) continue;
}

/// The tasks of one step and which of them are done; a thread for each stream but the first one.
class RunningStep {
 public:
  RunningStep(const std::vector<StepTask>& tasks, const StepRunner::Carry& carry)
      : tasks_(tasks), carry_(carry), spans_(tasks.size()), done_(tasks.size(), false) {
    for (std::size_t i = 0; i < tasks.size(); ++i) streams_[tasks[i].stream].push_back(i);
  }

  std::vector<TaskSpan> run() && {
    std::vector<std::thread> threads;
    for (auto stream = std::next(streams_.begin()); stream != streams_.end(); ++stream) {
      threads.emplace_back([this, &numbers = stream->second] { run_stream(numbers); });
    }
    run_stream(streams_.begin()->second);
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(spans_);
  }

 private:
  void run_stream(const std::vector<std::size_t>& numbers) {
    try {
      for (const std::size_t number : numbers) {
        const StepTask& task = tasks_[number];
        if (!wait_for(task.after)) return;
        const double start = now();
        if (task.exchange >= 0) carry_(task);
        if (task.seconds > 0.0) sleep_until(start + task.seconds);
        spans_[number] = {start, now()};
        const std::scoped_lock lock(mutex_);
        done_[number] = true;
        changed_.notify_all();
      }
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      changed_.notify_all();
    }
  }

  /// False when another stream has failed.
  bool wait_for(const std::vector<int>& after) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return failure_ || std::ranges::all_of(after, [&](int number) { return done_[at_index(number)]; });
    });
    return !failure_;
  }

  const std::vector<StepTask>& tasks_;
  const StepRunner::Carry& carry_;
  std::map<int, std::vector<std::size_t>> streams_;  ///< numbers of their tasks
  std::vector<TaskSpan> spans_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  std::exception_ptr failure_;
};

}  // namespace

StepRunner::StepRunner(const WorkerTask& task, int process, Carry carry)
    : task_(task), process_(process), carry_(std::move(carry)) {}

void StepRunner::run() {
  if (task_.steps.empty() || process_ >= task_.ranks) {  // servers have nothing else to do
    carry_(StepTask{0, 0.0, 0, {}});
    return;
  }
  const std::vector<StepTask>& tasks = task_.steps[at_index(process_)];
  if (!tasks.empty()) repetitions_.push_back(RunningStep(tasks, carry_).run());
}

void StepRunner::write() const {
  if (repetitions_.empty()) return;
  Moments steps;
  for (std::size_t r = std::min(at_index(task_.warmup), repetitions_.size() - 1); r < repetitions_.size(); ++r) {
    auto& spans = steps.emplace_back();
    for (const TaskSpan& span : repetitions_[r]) spans.push_back({span.start, span.end});
  }
  write_file(spans_file(task_.folder, process_), nlohmann::json(steps).dump());
}

std::vector<std::vector<TaskSpan>> read_spans(const std::string& folder, int ranks) {
  std::vector<Moments> steps_of_rank;
  std::vector<double> began;  // the first task of each step, on any rank
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(spans_file(folder, rank));
    const Moments& steps = steps_of_rank.emplace_back(file ? nlohmann::json::parse(file).get<Moments>() : Moments());
    began.resize(std::max(began.size(), steps.size()), std::numeric_limits<double>::infinity());
    for (std::size_t step = 0; step < steps.size(); ++step) {
      for (const auto& [start, end] : steps[step]) began[step] = std::min(began[step], start);
    }
  }
  std::vector<std::vector<TaskSpan>> result;
  for (const Moments& steps : steps_of_rank) {
    std::vector<TaskSpan>& spans = result.emplace_back(steps.empty() ? 0 : steps.front().size());
    for (std::size_t task = 0; task < spans.size(); ++task) {
      std::vector<double> starts, ends;
      for (std::size_t step = 0; step < steps.size(); ++step) {
        starts.push_back(steps[step][task][0] - began[step]);
        ends.push_back(steps[step][task][1] - began[step]);
      }
      spans[task] = {median(starts), median(ends)};
    }
  }
  return result;
}

}  // namespace foretrain
