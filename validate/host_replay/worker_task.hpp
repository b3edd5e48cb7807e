// What one process of a replay is told: who takes part, who sends what when, and how often. Written by the program,
// read by the worker processes; one file for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/words.hpp"
#include "model/collectives/schedule.hpp"

namespace foretrain {

/// Who carries a collective or a step out.
enum class HostExecutor {
#define EXECUTOR(name, ...) name,
#include "validate/host_replay/executors.def"
};

/// Throws UsageError for another word.
HostExecutor parse_executor(const std::string& word);

/// A rank or a server: one process.
struct Participant {
  int host = 0;
  std::string address;  ///< of its host
};

/// First value and number of values of a range of chunks.
struct ValueRange {
  std::int64_t first = 0, count = 0;
  [[nodiscard]] bool overlaps(const ValueRange& other) const {
    return first < other.first + other.count && other.first < first + count;
  }
};

/// What moves between participants, phase by phase; each phase so often.
struct Exchange {
  struct Message {
    int source = 0, destination = 0;
    std::int64_t bytes = 0;
  };
  struct Phase {
    int repeat = 1;
    std::vector<Message> messages;  ///< at the same time
  };
  std::vector<Phase> phases;
};

/// What a rank does in a training step: it computes for a time, or takes part in an exchange.
struct StepTask {
  int stream =
      0;  ///< tasks of a stream follow each other, in all processes in the same order; streams run side by side
  double seconds = 0.0;
  int exchange = -1;       ///< into WorkerTask::exchanges; −1: it computes
  std::vector<int> after;  ///< earlier tasks of the rank
};

struct WorkerTask {
  HostExecutor executor = HostExecutor::own;
  std::string algorithm;                  ///< as in scenarios; Gloo has an implementation of its own
  std::vector<Participant> participants;  ///< the ranks, then the servers
  int ranks = 0;
  std::int64_t elements = 0;  ///< fp32 values of the message
  int chunks = 1;
  std::vector<Phase> phases;  ///< own: the whole schedule of an all-reduce
  int keys = 1;               ///< server: the message is cut into this many keys, key k lives on server k mod servers
  int iterations = 1;         ///< server: of every worker in a repetition
  /// server: iterations by which a worker may be ahead of the slowest; 0: synchronous.
  int bound = 0;
  static constexpr int unbounded = 1 << 30;
  std::vector<std::vector<StepTask>> steps;  ///< by rank; empty: all values are added up at once, and that is all
  std::vector<Exchange> exchanges;           ///< of the steps; server: one, of all values with the store
  int warmup = 2;
  int repetitions = 5;
  double timeout = 60.0;  ///< seconds for everything; after that the process gives up
  std::string folder;     ///< where the processes meet: barrier, results

  [[nodiscard]] int servers() const { return static_cast<int>(participants.size()) - ranks; }
};

std::string to_json(const WorkerTask& task);
/// Throws std::runtime_error for a text that is no task, or one with participants or chunks that do not exist.
WorkerTask task_from_json(const std::string& text);

ValueRange values_of(const Transfer& transfer, std::int64_t elements, int chunks);

/// Value i that a rank contributes: a small whole number, so that fp32 sums are exact in any order.
inline float contribution(int rank, std::int64_t i) {
  return static_cast<float>((i * 7 + rank * std::int64_t{13}) % 61);
}
/// What every rank must hold at the end.
inline float expected_sum(int ranks, std::int64_t i) {
  float sum = 0.0F;
  for (int rank = 0; rank < ranks; ++rank) sum += contribution(rank, i);
  return sum;
}

}  // namespace foretrain
