#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

#include "model/base/number.hpp"
#include "validate/host_replay/sockets.hpp"
#include "validate/host_replay/worker.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

namespace {

constexpr std::size_t added_at_once = std::size_t{256} << 10U;  // received, then added, while it is in the cache

struct Moving {
  char* memory = nullptr;
  std::size_t bytes = 0;
  float* sums = nullptr;  ///< to which its values are added as they come
  std::size_t done = 0, added = 0;
};

struct Peer {
  int process = 0;
  Descriptor socket = {};
  std::vector<char> out = {}, in = {};  ///< of messages that mean nothing, and of values to be added
  std::deque<Moving> leaving = {}, coming = {};

  void send_some() {
    Moving& moving = leaving.front();
    moving.done += send_bytes(socket, moving.memory + moving.done, moving.bytes - moving.done, MSG_DONTWAIT, process);
    if (moving.done == moving.bytes) leaving.pop_front();
  }

  void receive_some() {
    Moving& moving = coming.front();
    std::size_t wanted = moving.bytes - moving.done;
    if (moving.sums != nullptr) wanted = std::min(wanted, added_at_once);
    moving.done += receive_bytes(socket, moving.memory + moving.done, wanted, MSG_DONTWAIT, process);
    if (moving.sums != nullptr) add(moving);
    if (moving.done == moving.bytes) coming.pop_front();
  }

 private:
  static void add(Moving& moving) {
    const std::size_t whole = moving.done / sizeof(float);
    const auto* terms = reinterpret_cast<const float*>(moving.memory);
    for (std::size_t i = moving.added; i < whole; ++i) moving.sums[i] += terms[i];
    moving.added = whole;
  }
};

/// A stream's exchanges, over connections of its own.
class Stream {
 public:
  Stream(const WorkerTask& task, int process, ProcessBarrier& barrier, const std::vector<const Exchange*>& exchanges,
         std::vector<float>& values)
      : process_(process), values_(values) {
    for (const Exchange* exchange : exchanges) {
      for (const Exchange::Phase& phase : exchange->phases) {
        for (const Exchange::Message& message : phase.messages) note(message);
      }
    }
    std::vector<int> numbers;
    for (const auto& [number, peer] : peers_) numbers.push_back(number);
    std::vector<Descriptor> sockets = connect_with(task, process, numbers, barrier);
    for (auto& [number, peer] : peers_) peer.socket = std::move(sockets[at_index(number)]);
  }

  void carry(const Exchange& exchange) {
    for (const Exchange::Phase& phase : exchange.phases) {
      for (int turn = 0; turn < phase.repeat; ++turn) run_phase(phase);
    }
  }

 private:
  void note(const Exchange::Message& message) {
    const bool sends = message.source == process_;
    if (!sends && message.destination != process_) return;
    Peer& peer = peers_.try_emplace(sends ? message.destination : message.source).first->second;
    peer.process = sends ? message.destination : message.source;
    if (message.values.count > 0 && !message.adds) return;
    std::vector<char>& memory = sends ? peer.out : peer.in;
    memory.resize(std::max(memory.size(), static_cast<std::size_t>(message.bytes)));
  }

  void run_phase(const Exchange::Phase& phase) {
    copies_.clear();
    for (const Exchange::Message& message : phase.messages) {
      if (message.source == process_) {
        peers_.at(message.destination).leaving.push_back(to_send(phase, message));
      } else if (message.destination == process_) {
        peers_.at(message.source).coming.push_back(to_receive(message));
      }
    }
    while (move_some()) continue;
  }

  Moving to_send(const Exchange::Phase& phase, const Exchange::Message& message) {
    const auto bytes = static_cast<std::size_t>(message.bytes);
    if (message.values.count == 0) return {peers_.at(message.destination).out.data(), bytes};
    float* values = values_.data() + message.values.first;
    // Only what was there before the phase may leave: where something arrives at the same place, a copy is sent.
    const bool changes = std::ranges::any_of(phase.messages, [&](const Exchange::Message& other) {
      return other.destination == process_ && other.values.overlaps(message.values);
    });
    if (changes) values = copies_.emplace_back(values, values + message.values.count).data();
    return {reinterpret_cast<char*>(values), bytes};
  }

  Moving to_receive(const Exchange::Message& message) {
    const auto bytes = static_cast<std::size_t>(message.bytes);
    char* memory = peers_.at(message.source).in.data();
    if (message.values.count == 0) return {memory, bytes};
    float* values = values_.data() + message.values.first;
    if (message.adds) return {memory, bytes, values};
    return {reinterpret_cast<char*>(values), bytes};
  }

  /// Waits until something can move, and moves it. False when all is done.
  bool move_some() {
    std::vector<pollfd> ends;
    std::vector<Peer*> active;
    for (auto& [number, peer] : peers_) {
      const int events = (peer.leaving.empty() ? 0 : POLLOUT) | (peer.coming.empty() ? 0 : POLLIN);
      if (events == 0) continue;
      ends.push_back({peer.socket.number(), static_cast<short>(events), 0});
      active.push_back(&peer);
    }
    if (active.empty() || poll(ends.data(), ends.size(), 1000) <= 0) return !active.empty();
    for (std::size_t i = 0; i < active.size(); ++i) {
      const auto can = [&](int event) { return (ends[i].revents & (event | POLLERR | POLLHUP)) != 0; };
      if (can(POLLOUT) && !active[i]->leaving.empty()) active[i]->send_some();
      if (can(POLLIN) && !active[i]->coming.empty()) active[i]->receive_some();
    }
    return true;
  }

  int process_;
  std::vector<float>& values_;
  std::map<int, Peer> peers_;
  std::deque<std::vector<float>> copies_;
};

/// All streams of the task, in the same order in every process: each connects when all have come to it.
std::map<int, Stream> streams_of(const WorkerTask& task, int process, ProcessBarrier& barrier,
                                 std::vector<float>& values) {
  std::set<int> numbers;
  for (const std::vector<StepTask>& tasks : task.steps) {
    for (const StepTask& t : tasks) {
      if (t.exchange >= 0) numbers.insert(t.stream);
    }
  }
  std::map<int, Stream> streams;
  for (const int number : numbers) {
    std::vector<const Exchange*> exchanges;
    for (const StepTask& t : task.steps[at_index(process)]) {
      if (t.exchange >= 0 && t.stream == number) exchanges.push_back(&task.exchanges[at_index(t.exchange)]);
    }
    streams.try_emplace(number, task, process, barrier, exchanges, values);
  }
  return streams;
}

/// Clock ticks that all processors together have spent, and those of them that were not idle.
struct ProcessorTime {
  double all = 0.0, busy = 0.0;
};

ProcessorTime processor_time() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  ProcessorTime time;
  double ticks = 0.0;
  for (int column = 0; column < 8 && file >> ticks; ++column) {
    time.all += ticks;
    if (column != 3 && column != 4) time.busy += ticks;  // idle, waiting for disks
  }
  return time;
}

/// Throws std::runtime_error naming the first wrong value.
void check_sums(const WorkerTask& task, const std::vector<float>& values) {
  for (std::int64_t i = 0; i < task.elements; ++i) {
    const float expected = expected_sum(task.ranks, i);
    if (values[at_index(i)] == expected) continue;
    throw std::runtime_error(fmt::format("wrong sum: value {} is {}, not {}", i, values[at_index(i)], expected));
  }
}

}  // namespace

WorkerTimes run_exchanges(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  const bool rank = process < task.ranks;
  std::vector<float> values(at_index(task.elements));
  std::map<int, Stream> streams = streams_of(task, process, barrier, values);
  const auto carry = [&](const StepTask& t) { streams.at(t.stream).carry(task.exchanges[at_index(t.exchange)]); };
  WorkerTimes times;
  ProcessorTime spent;
  for (int repetition = -task.warmup; repetition < task.repetitions; ++repetition) {
    for (std::int64_t i = 0; i < task.elements; ++i) values[at_index(i)] = rank ? contribution(process, i) : 0.0F;
    barrier.wait();
    const ProcessorTime before = process == 0 ? processor_time() : ProcessorTime{};
    barrier.wait();
    const double start = now();
    if (task.save_every > 0 && repetition > 0 && repetition % task.save_every == 0)
      sleep_until(start + task.save_seconds);
    std::vector<TaskSpan> spans = run_step(task.steps[at_index(process)], carry);
    const double seconds = now() - start;
    if (repetition >= 0) {
      times.seconds.push_back(seconds);
      times.spans.push_back(std::move(spans));
    }
    if (process == 0 && repetition >= 0) {
      const ProcessorTime after = processor_time();
      spent.all += after.all - before.all;
      spent.busy += after.busy - before.busy;
    }
    barrier.wait();
    if (rank && (repetition == -task.warmup || repetition + 1 == task.repetitions)) check_sums(task, values);
  }
  times.busy = spent.all > 0.0 ? spent.busy / spent.all : 0.0;
  return times;
}

}  // namespace foretrain
