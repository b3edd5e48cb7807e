// A task graph as it is handed from foretrain, which predicts it, to foretrain-gpu, which runs it: plain values,
// without the libraries of either. graph_text.hpp writes and reads them as a file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace foretrain::replay {

/// An operator, launched `count` times. `kind` and `fields` are those of `workload.operator`, or `traffic` { read,
/// written, flops }: a kernel of which the model knows the bytes alone.
struct KernelWork {
  std::string name, kind;
  std::map<std::string, std::string> fields;
  int count = 1;
  double predicted = 0.0;  ///< seconds, of one
  bool operator==(const KernelWork&) const = default;
};

/// Between "gpu0", "gpu1", "cpu", …; pageable memory of a host is fresh.
struct CopyWork {
  std::string from, to;
  std::int64_t bytes = 0;
  bool pinned = true;
  bool operator==(const CopyWork&) const = default;
};

/// An all-reduce of all GPUs that take part, `count` times one after the other. `method`: nccl | server_cpu |
/// server_gpu.
struct CollectiveWork {
  std::string method = "nccl";
  std::int64_t bytes = 0;
  int ranks = 1;
  int servers = 1;
  int count = 1;
  bool operator==(const CollectiveWork&) const = default;
};

enum class HostAction { dispatch, launch, sleep, wait, synchronize, format, page_lock };

/// What the host thread does, as HostWork of model/graph/recipe.hpp says.
struct HostWork {
  HostAction action = HostAction::wait;
  double seconds = 0.0;    ///< sleep, format; of a dispatch the prediction
  std::int64_t bytes = 0;  ///< page_lock
  int kernels = 0;         ///< dispatch: tasks on the device that it hands over
  bool graph = false;      ///< dispatch: as one CUDA graph
  bool operator==(const HostWork&) const = default;
};

using Work = std::variant<KernelWork, CopyWork, CollectiveWork, HostWork>;

/// Done in this order; nothing where a task only marks a moment.
struct Block {
  std::string name, category;
  double predicted = 0.0;  ///< seconds, alone
  std::vector<Work> work;
  bool operator==(const Block&) const = default;
};

enum class ResourceKind { stream, copies, host, path };

/// A queue that works in the order of its tasks: a stream for kernels or for copies, a host thread. A path has no
/// queue: what it carries is on its way.
struct Resource {
  std::string name;
  ResourceKind kind = ResourceKind::stream;
  int device = 0;  ///< of streams; where the graph is `replicated`, one such stream on every GPU
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
