// Events of a trace of PyTorch's profiler (Trace Event Format).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace foretrain {

struct CollectiveArguments {
  std::string name, group, group_ranks;  ///< "allreduce"; the process group; its ranks as "[0, 8]", or empty
  double bytes = 0.0;                    ///< as nccl-tests counts them; 0: not known
  int ranks = 0;
};

/// Times in microseconds.
struct TraceEvent {
  std::string name, category, thread = {};
  int device = 0;
  double start = 0.0, duration = -1.0;
  double correlation = -1.0;  ///< of a kernel and the call that launched it
  std::optional<CollectiveArguments> collective = std::nullopt;
  [[nodiscard]] double end() const { return start + duration; }
};

/// All complete events. Throws ScenarioError for what is no trace; `file` is named in errors.
std::vector<TraceEvent> read_events(const std::string& text, const std::string& file);

}  // namespace foretrain
