#include <algorithm>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

#include "model/base/number.hpp"
#include "validate/host_replay/worker.hpp"

namespace foretrain {

namespace {

void compute_for(double seconds) {
  const double end = now() + seconds;
  while (now() < end) continue;
}

/// The tasks of one step and which of them are done; a thread for each stream but the first one.
class RunningStep {
 public:
  RunningStep(const std::vector<StepTask>& tasks, const std::function<void(const ValueRange&)>& exchange)
      : tasks_(tasks), exchange_(exchange), done_(tasks.size(), false) {
    for (std::size_t i = 0; i < tasks.size(); ++i) streams_[tasks[i].stream].push_back(i);
  }

  void run() {
    std::vector<std::thread> threads;
    for (auto stream = std::next(streams_.begin()); stream != streams_.end(); ++stream) {
      threads.emplace_back([this, &numbers = stream->second] { run_stream(numbers); });
    }
    run_stream(streams_.begin()->second);
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run_stream(const std::vector<std::size_t>& numbers) {
    try {
      for (const std::size_t number : numbers) {
        const StepTask& task = tasks_[number];
        if (!wait_for(task.after)) return;
        if (task.exchanged.count > 0) exchange_(task.exchanged);
        compute_for(task.seconds);
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
  const std::function<void(const ValueRange&)>& exchange_;
  std::map<int, std::vector<std::size_t>> streams_;  ///< numbers of their tasks
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  std::exception_ptr failure_;
};

}  // namespace

void run_step(const WorkerTask& task, int process, const std::function<void(const ValueRange&)>& exchange) {
  if (task.steps.empty() || process >= task.ranks) {  // servers have nothing else to do
    exchange({0, task.elements});
  } else if (const std::vector<StepTask>& tasks = task.steps[at_index(process)]; !tasks.empty()) {
    RunningStep(tasks, exchange).run();
  }
}

}  // namespace foretrain
