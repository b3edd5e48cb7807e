#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>

#include "model/base/number.hpp"
#include "validate/host_replay/moves.hpp"
#include "validate/host_replay/sockets.hpp"
#include "validate/host_replay/worker.hpp"
#include "validate/host_replay/worker_step.hpp"

namespace foretrain {

namespace {

/// A stream's exchanges, over connections of its own.
class Stream {
 public:
  Stream(const WorkerTask& task, int process, ProcessBarrier& barrier, const std::vector<const Exchange*>& exchanges)
      : process_(process) {
    for (const Exchange* exchange : exchanges) {
      for (const Exchange::Phase& phase : exchange->phases) {
        for (const Exchange::Message& message : phase.messages) note(message);
      }
    }
    std::vector<int> peers;
    for (const auto& [peer, memory] : memory_) peers.push_back(peer);
    sockets_ = connect_with(task, process, peers, barrier);
  }

  void carry(const Exchange& exchange) {
    for (const Exchange::Phase& phase : exchange.phases) {
      for (int turn = 0; turn < phase.repeat; ++turn) run_phase(phase);
    }
  }

 private:
  /// What is sent to a peer and comes from it, and how many messages did: each begins with its number.
  struct Memory {
    std::vector<char> out, in;
    std::int64_t sent = 0, received = 0;
  };

  void note(const Exchange::Message& message) {
    const auto enlarge = [&](std::vector<char>& memory) {
      memory.resize(std::max(memory.size(), static_cast<std::size_t>(message.bytes)));
    };
    if (message.source == process_) enlarge(memory_[message.destination].out);
    if (message.destination == process_) enlarge(memory_[message.source].in);
  }

  void run_phase(const Exchange::Phase& phase) {
    arriving_.clear();
    for (const Exchange::Message& message : phase.messages) {
      const auto bytes = static_cast<std::size_t>(message.bytes);
      if (message.source == process_) {
        Memory& memory = memory_.at(message.destination);
        std::memcpy(memory.out.data(), &memory.sent, std::min(bytes, sizeof memory.sent));
        ++memory.sent;
        moves_.send(message.destination, memory.out.data(), bytes);
      } else if (message.destination == process_) {
        moves_.receive(message.source, memory_.at(message.source).in.data(), bytes);
        arriving_.push_back(&message);
      }
    }
    moves_.run(sockets_);
    for (const Exchange::Message* message : arriving_) check(*message);
  }

  void check(const Exchange::Message& message) {
    Memory& memory = memory_.at(message.source);
    const auto bytes = std::min(static_cast<std::size_t>(message.bytes), sizeof memory.received);
    if (std::memcmp(memory.in.data(), &memory.received, bytes) != 0) {
      throw std::runtime_error(
          fmt::format("another message than the one expected came from process {}", message.source));
    }
    ++memory.received;
  }

  int process_;
  std::map<int, Memory> memory_;  ///< by peer
  std::vector<Descriptor> sockets_;
  Moves moves_;
  std::vector<const Exchange::Message*> arriving_;
};

/// All streams of the task, in the same order in every process: each connects when all have come to it.
std::map<int, Stream> streams_of(const WorkerTask& task, int process, ProcessBarrier& barrier) {
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
    streams.try_emplace(number, task, process, barrier, exchanges);
  }
  return streams;
}

}  // namespace

void run_exchanges(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  std::map<int, Stream> streams = streams_of(task, process, barrier);
  StepRunner runner(task, process,
                    [&](const StepTask& t) { streams.at(t.stream).carry(task.exchanges[at_index(t.exchange)]); });
  measure(task, process, barrier, {[] {}, [&] { runner.run(); }, [] {}});
  runner.write();
}

}  // namespace foretrain
