// Tasks of a replay's processes: participants, messages in order, and repetitions.
#pragma once

#include <cstdint>
#include <vector>

namespace foretrain {

/// Some of the fp32 values of a message.
struct ValueRange {
  std::int64_t first = 0, count = 0;
  [[nodiscard]] bool overlaps(const ValueRange& other) const {
    return first < other.first + other.count && other.first < first + count;
  }
};

/// Values of `count` parts from `part` on, where `elements` values are cut into `parts`.
ValueRange values_of(std::int64_t elements, int parts, int part, int count = 1);

/// Messages between participants, phase by phase; each phase so often.
struct Exchange {
  struct Message {
    int source = 0, destination = 0;
    std::int64_t bytes = 0;
    ValueRange values = {};  ///< of those that are summed; without any, the bytes mean nothing
    bool adds = false;       ///< the receiver adds the values to its own, instead of replacing them
  };
  struct Phase {
    int repeat = 1;
    std::vector<Message> messages;  ///< at the same time
  };
  std::vector<Phase> phases;
};

/// A process's task in a step: it computes for a time, or takes part in an exchange.
struct StepTask {
  /// Tasks of a stream follow each other, in all processes in the same order; streams run side by side.
  int stream = 0;
  double seconds = 0.0;
  int exchange = -1;       ///< into WorkerTask::exchanges; −1: it computes
  std::vector<int> after;  ///< earlier tasks of the process
};

/// The stream in which a data loader lets its time pass.
inline constexpr int loading_stream = 1'000'000;

/// When a task ran, in seconds.
struct TaskSpan {
  double start = 0.0, end = 0.0;
};

struct WorkerTask {
  std::vector<int> hosts;  ///< of each process: the ranks, then the servers
  int ranks = 0;
  std::int64_t elements = 0;                 ///< fp32 values that are summed
  std::vector<std::vector<StepTask>> steps;  ///< by process
  std::vector<Exchange> exchanges;
  int save_every = 0;         ///< repetitions, of which one begins with a checkpoint; 0: none does
  double save_seconds = 0.0;  ///< that it takes
  int warmup = 2;
  int repetitions = 5;
  double timeout = 60.0;  ///< seconds for everything

  [[nodiscard]] int processes() const { return static_cast<int>(hosts.size()); }
  [[nodiscard]] int servers() const { return processes() - ranks; }
};

/// Value i that a rank contributes: a small whole number, so that fp32 sums are exact in any order.
inline float contribution(int rank, std::int64_t i) {
  return static_cast<float>((i * 7 + rank * std::int64_t{13}) % 61);
}
/// Value that every rank must hold at the end.
inline float expected_sum(int ranks, std::int64_t i) {
  float sum = 0.0F;
  for (int rank = 0; rank < ranks; ++rank) sum += contribution(rank, i);
  return sum;
}

}  // namespace foretrain
