#include "validate/host_replay/worker.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/collectives/schedule.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

void sleep_until(double moment) {
  const auto whole = static_cast<std::time_t>(moment);
  const timespec date{whole, static_cast<long>((moment - number(whole)) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &date, nullptr) == EINTR) continue;
}

namespace {

/// The tasks of one step and which of them are done; a thread for each stream but the first one.
class RunningStep {
 public:
  RunningStep(const std::vector<StepTask>& tasks, const std::function<void(const StepTask&)>& carry)
      : tasks_(tasks), carry_(carry), spans_(tasks.size()), done_(tasks.size(), false) {
    for (std::size_t i = 0; i < tasks.size(); ++i) streams_[tasks[i].stream].push_back(i);
  }

  std::vector<TaskSpan> run() && {
    {
      std::vector<std::jthread> threads;
      for (auto stream = std::next(streams_.begin()); stream != streams_.end(); ++stream) {
        threads.emplace_back([this, &numbers = stream->second] { run_stream(numbers); });
      }
      run_stream(streams_.begin()->second);
    }
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
  const std::function<void(const StepTask&)>& carry_;
  std::map<int, std::vector<std::size_t>> streams_;  ///< numbers of their tasks
  std::vector<TaskSpan> spans_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  std::exception_ptr failure_;
};

}  // namespace

struct ProcessBarrier::Shared {
  pthread_barrier_t barrier;
  std::atomic<int> failures;
  int process;
  std::array<char, 2000> why;
  std::atomic<bool> reported;
};

ProcessBarrier::ProcessBarrier(int processes) : memory_(sizeof(Shared)), shared_(memory_.as<Shared>(1).front()) {
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared_.barrier, &attributes, static_cast<unsigned>(processes));
}

void ProcessBarrier::wait() { pthread_barrier_wait(&shared_.barrier); }

void ProcessBarrier::fail(int process, const std::string& why) {
  if (shared_.failures.fetch_add(1) == 0) {
    shared_.process = process;
    why.copy(shared_.why.data(), shared_.why.size() - 1);
    shared_.reported = true;
  }
  _exit(EXIT_FAILURE);
}

std::optional<std::pair<int, std::string>> ProcessBarrier::failure() const {
  if (!shared_.reported) return std::nullopt;
  return std::pair(shared_.process, std::string(shared_.why.data()));
}

std::vector<TaskSpan> run_step(const std::vector<StepTask>& tasks, const std::function<void(const StepTask&)>& carry) {
  return tasks.empty() ? std::vector<TaskSpan>() : RunningStep(tasks, carry).run();
}

ValueRange values_of(std::int64_t elements, int parts, int part, int count) {
  // Parts of whole values: chunk_range_size counts anything.
  const auto before = [&](int end) {
    return static_cast<std::int64_t>(chunk_range_size(Bytes(number(elements)), parts, 0, end).value());
  };
  return {before(part), before(part + count) - before(part)};
}

}  // namespace foretrain
