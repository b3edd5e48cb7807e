// What one process of a replay is told: who takes part, who sends what when, and how often. Written by the program,
// read by the worker processes; one file for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/words.hpp"
#include "model/collectives/schedule.hpp"

namespace foretrain {

/// Who carries the all-reduce out.
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

/// First value and number of values of a range of chunks, or of what is exchanged at once.
struct ValueRange {
  std::int64_t first = 0, count = 0;
  [[nodiscard]] bool overlaps(const ValueRange& other) const {
    return first < other.first + other.count && other.first < first + count;
  }
};

/// What a rank does in a training step: it computes, which keeps a processor busy for a time, or takes part in the
/// exchange of some of the values.
struct StepTask {
  int stream = 0;  ///< tasks of a stream follow each other; streams run side by side
  double seconds = 0.0;
  ValueRange exchanged;    ///< none: it computes
  std::vector<int> after;  ///< earlier tasks of the rank
};

struct WorkerTask {
  HostExecutor executor = HostExecutor::own;
  std::string algorithm;                  ///< as in scenarios; Gloo and MPI choose their own implementation of it
  std::vector<Participant> participants;  ///< the ranks, then the servers
  int ranks = 0;
  std::int64_t elements = 0;  ///< fp32 values of the message
  int chunks = 1;
  std::vector<Phase> phases;  ///< own: the whole schedule
  int keys = 1;               ///< server: the message is cut into this many keys, key k lives on server k mod servers
  std::vector<std::vector<StepTask>> steps;  ///< by rank; empty: all values are exchanged at once, and that is all
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
