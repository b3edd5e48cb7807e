// A task graph as it is handed from foretrain, which predicts it, to foretrain-gpu, which runs it: plain values,
// without the libraries of either. graph_text.hpp writes and reads them as a file.
#pragma once

#include <string>
#include <vector>

#include "model/base/work.hpp"

namespace foretrain::replay {

/// Done in this order; nothing where a task only marks a moment.
struct Block {
  std::string name, category;
  double predicted = 0.0;  ///< seconds, alone
  std::vector<Work> work;
  bool operator==(const Block&) const = default;
};

/// A queue that works in the order of its tasks: a stream for kernels or for copies, a host thread. A path has no
/// queue: what it carries is on its way. A framework is a host thread whose dispatches take at least their predicted
/// time, shared evenly among what they hand over. The host work of a training step, by an executor without the
/// framework.
struct Resource {
  enum class Kind { stream, copies, host, path, framework };
  std::string name;
  Kind kind = Kind::stream;
  int device = 0;  ///< of streams; where the graph is `replicated`, one such stream on every GPU

  [[nodiscard]] bool on_host() const { return kind == Kind::host || kind == Kind::framework; }
  bool operator==(const Resource&) const = default;
};

/// Numbered by their place in Graph::tasks. `after` are smaller numbers.
struct Task {
  int block = 0, resource = 0;
  std::vector<int> after;
  double start = 0.0, end = 0.0;  ///< predicted, seconds from the beginning
  bool operator==(const Task&) const = default;
};

struct Graph {
  std::string name;      ///< letters, digits and dashes: files are called after it
  std::string scenario;  ///< in words
  std::string hardware, fidelity;
  int gpus = 1;
  bool replicated = false;  ///< every GPU does all of it (data parallel); else tasks are on the device that they name
  bool capture = false;     ///< the whole is captured as one CUDA graph and launched at once
  double predicted = 0.0;   ///< seconds, from the first task's start to the last one's end
  std::vector<Resource> resources;
  std::vector<Block> blocks;
  std::vector<Task> tasks;
  bool operator==(const Graph&) const = default;
};

}  // namespace foretrain::replay
