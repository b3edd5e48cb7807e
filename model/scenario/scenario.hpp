// A scenario as plain values: what the YAML says, with every default resolved. Made by load.hpp, and by nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/error.hpp"
#include "model/base/work.hpp"
#include "model/collectives/contention.hpp"
#include "model/cost/calibration.hpp"
#include "model/cost/storage.hpp"
#include "model/hardware/cluster.hpp"
#include "model/parallelism/plan.hpp"
#include "model/scenario/yaml_document.hpp"
#include "model/workload/data_loader.hpp"
#include "model/workload/host_operators.hpp"
#include "model/workload/model.hpp"
#include "model/workload/operator_alone.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

/// Its algorithm, servers and placement are those of Plan::sync.
struct CollectiveWorkload {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  Bytes size;
  int ranks = 0;   ///< the first GPUs of the cluster; all of them unless the scenario says otherwise
  int groups = 1;  ///< into which the ranks are divided; all carry out the operation at the same time
  RankGrouping layout = RankGrouping::blocked;
};

/// An operator on the node's processor (`on: cpu`), or a walk over a GPU's memory.
struct HostWorkload {
  std::string name;
  std::variant<MemoryWalk, CpuMatmul, GpuChase> work;
  int repeat = 1;
};

/// Requests to storage alone.
struct StorageWorkload {
  Storage storage;
  DiskPattern pattern;
  Bytes size;  ///< all requests together
};

/// A data loader alone, emptied as fast as it delivers.
struct LoaderWorkload {
  DataLoader loader;
  double batch = 1.0;  ///< samples
};

/// A model's forward pass, or forward and backward, for one batch.
struct ModelCall {
  ModelConfig model;
  std::int64_t batch = 1;
  Precision precision = Precision::fp32;
  AttentionKind attention = AttentionKind::flash;
  bool backward = false;
  std::optional<ExecutionMode> execution;  ///< Plan::execution where nothing is said
};

/// A result on a GPU ("gpu0" or one of its streams) that a host thread asks for, waits for and then works on.
struct FetchedResult {
  CopyWork copy;
  HostWork then;
};

/// Work of a task. A copy may be from or to the "disk"; of host work the model knows the durations that are not
/// stated.
using TaskWork = std::variant<Operator, ModelCall, CopyWork, HostWork, FetchedResult>;

/// One entry of `workload.tasks`.
struct ScenarioTask {
  std::string id;
  std::string on;  ///< "gpu0", "gpu0:stream1", "cpu", "gpu0:d2h"
  TaskWork work;
  std::string enqueued_by;  ///< host thread that launches it ("cpu"); empty: it is there when the device is
  int loop = -1;            ///< into TasksWorkload::loops; -1: none
  int repeat = 1;
  std::vector<std::string> after;
  SourcePosition where;

  /// Its copy between memories, if any.
  [[nodiscard]] const CopyWork* copy() const {
    const auto* fetched = std::get_if<FetchedResult>(&work);
    return fetched != nullptr ? &fetched->copy : std::get_if<CopyWork>(&work);
  }
};
struct TasksWorkload {
  std::vector<ScenarioTask> tasks;
  std::vector<int> loops;  ///< how often each loop runs; the tasks of a loop follow each other in `tasks`
};

using Workload = std::variant<TrainWorkload, CollectiveWorkload, OperatorWorkload, TasksWorkload, HostWorkload,
                              StorageWorkload, LoaderWorkload>;

/// Errors of a learned profile's predicted steps: nine of ten within `spread`, as a share, on as
/// many nodes as it was learned from.
struct LearnedRange {
  double spread = 0.0;
  double memory_shortfall = 0.0;  ///< nine of ten runs need no more beyond prediction; 0 where none measured memory
  int least_nodes = 1, most_nodes = 1;
};

/// Positions of keys: in the scenario's document, or in the file of the framework that it names.
struct StatedKeys {
  YamlNode document;
  std::vector<std::pair<std::string, SourcePosition>> framework;

  /// Null where nobody wrote the dotted key.
  [[nodiscard]] const SourcePosition* find(std::string_view key) const {
    if (const YamlNode* node = document.at(key)) return &node->where;
    for (const auto& [other, where] : framework) {
      if (other == key) return &where;
    }
    return nullptr;
  }
  [[nodiscard]] bool contains(std::string_view key) const { return find(key) != nullptr; }
};

struct Scenario {
  std::string name;
  std::string description;
  Cluster cluster;
  Workload workload;
  Plan plan;
  Calibration calibration;
  std::string trainer;  ///< a training's, by its name or that of the file which holds where none is named
  std::vector<ResolvedSetting> framework_settings;     ///< settings that the framework could decide, with their origin
  std::optional<LearnedRange> learned = std::nullopt;  ///< where the trainer was learned from runs
  std::vector<BackgroundFlow> background;
  std::vector<Scenario> jobs = {};        ///< others on the same cluster, each on nodes of its own (Plan::placement)
  std::vector<std::string> assumed = {};  ///< warnings: what an importer, or who wrote a machine's file, did not know
  StatedKeys where;
};

}  // namespace foretrain
