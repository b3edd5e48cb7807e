#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "model/base/number.hpp"
#include "validate/host_replay/sockets.hpp"
#include "validate/host_replay/worker.hpp"

namespace foretrain {

namespace {

/// One end of the connections between workers and servers. All push and answer keys in the same order, so that messages
/// are values alone.
class Store {
 public:
  Store(const WorkerTask& task, int process, ProcessBarrier& barrier)
      : task_(task), process_(process), barrier_(barrier), peers_(at_index(worker() ? task.servers() : task.ranks)) {
    std::iota(peers_.begin(), peers_.end(), worker() ? task.ranks : 0);
    sockets_ = connect_with(task, process, peers_, barrier);
    for (int key = 0; key < task.keys; ++key) {
      if (!worker() && key % task.servers() == process - task.ranks) {
        sums_[key] = {std::vector<float>(at_index(values_of(task.elements, task.keys, key).count)), {}};
      }
    }
    gradients_.resize(worker() ? at_index(task.elements) : 0);
    result_.resize(gradients_.size());
  }

  void prepare() {
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      gradients_[i] = contribution(process_, static_cast<std::int64_t>(i));
    }
    std::ranges::fill(result_, 0.0F);
    for (auto& [key, sum] : sums_) {
      std::ranges::fill(sum.values, 0.0F);
      sum.pushed.assign(at_index(task_.ranks), 0);
    }
  }

  /// A worker: all keys there and back. A server: until every worker has been answered.
  void run() {
    std::vector<std::jthread> threads;
    for (const int peer : peers_) {
      for (const bool sends : {true, false}) threads.emplace_back([this, peer, sends] { serve(peer, sends); });
    }
  }

  /// Only where nobody is ahead is it known what has been added up.
  void check() const {
    if (worker() && task_.bound == 0) check_sums(task_, result_);
  }

 private:
  struct Sum {
    std::vector<float> values;
    std::vector<int> pushed;  ///< by worker: how often
  };

  [[nodiscard]] bool worker() const { return process_ < task_.ranks; }

  /// Everything that goes one way between this process and a peer.
  void serve(int peer, bool sends) {
    try {
      const int server = (worker() ? peer : process_) - task_.ranks, turns = worker() ? 1 : task_.iterations;
      for (int turn = 0; turn < turns; ++turn) {
        for (int key = server; key < task_.keys; key += task_.servers()) {
          if (worker()) {
            move(peer, (sends ? gradients_ : result_).data() + values_of(task_.elements, task_.keys, key).first,
                 at_index(values_of(task_.elements, task_.keys, key).count), sends);
          } else {
            sends ? answer(peer, key, turn) : take(peer, key);
          }
        }
      }
    } catch (const std::exception& error) {
      barrier_.fail(process_, error.what());
    }
  }

  void take(int worker, int key) {
    Sum& sum = sums_.at(key);
    std::vector<float> pushed(sum.values.size());
    move(worker, pushed.data(), pushed.size(), false);
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < pushed.size(); ++i) sum.values[i] += pushed[i];
    ++sum.pushed[at_index(worker)];
    changed_.notify_all();
  }

  /// A worker that has pushed i times is answered when all have pushed i - bound times.
  void answer(int worker, int key, int turn) {
    const Sum& sum = sums_.at(key);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return sum.pushed[at_index(worker)] > turn && *std::ranges::min_element(sum.pushed) > turn - task_.bound;
    });
    std::vector<float> values = sum.values;
    lock.unlock();
    move(worker, values.data(), values.size(), true);
  }

  void move(int peer, float* values, std::size_t count, bool sends) {
    const Descriptor& socket = sockets_[at_index(peer)];
    auto* data = reinterpret_cast<char*>(values);
    for (std::size_t left = count * sizeof(float); left > 0;) {
      const std::size_t done =
          sends ? send_bytes(socket, data, left, 0, peer) : receive_bytes(socket, data, left, MSG_WAITALL, peer);
      data += done;
      left -= done;
    }
  }

  const WorkerTask& task_;
  int process_;
  ProcessBarrier& barrier_;
  std::vector<int> peers_;
  std::vector<Descriptor> sockets_;
  std::vector<float> gradients_, result_;  ///< of a worker
  std::map<int, Sum> sums_;                ///< of a server, by key
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace

WorkerTimes run_store(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  Store store(task, process, barrier);
  const auto work = [&] {
    if (process < task.ranks) return run_step(task.steps[at_index(process)], [&](const StepTask&) { store.run(); });
    store.run();
    return std::vector<TaskSpan>();
  };
  return measure(task, process, barrier, {[&] { store.prepare(); }, work, [&] { store.check(); }});
}

}  // namespace foretrain
