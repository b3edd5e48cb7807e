#include "reports/export/chakra_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/base/number.hpp"
#include "model/hardware/topology.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/graph/step_graph.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/workload/build.hpp"
#include "reports/import/chakra_trace.hpp"

namespace foretrain {

namespace {

/// Numbers of CollectiveCommType in et_def.proto, by words of our names for transfers.
struct CollectiveNumber {
  std::string_view word;
  CollectiveOperation operation;
  std::uint64_t number;
};
constexpr CollectiveNumber collective_numbers[] = {{"all-to-all", CollectiveOperation::all_to_all, 6},
                                                   {"dispatch", CollectiveOperation::all_to_all, 6},
                                                   {"combine", CollectiveOperation::all_to_all, 6},
                                                   {"broadcast", CollectiveOperation::broadcast, 5},
                                                   {"gather", CollectiveOperation::all_gather, 2},
                                                   {"scatter", CollectiveOperation::reduce_scatter, 7},
                                                   {"", CollectiveOperation::all_reduce, 0}};

const CollectiveNumber& collective_of(const std::string& name) {
  return *std::ranges::find_if(collective_numbers,
                               [&](const CollectiveNumber& one) { return name.find(one.word) != std::string::npos; });
}

/// Protocol Buffers' wire format (protobuf.dev, "Encoding").
class WireMessage {
 public:
  void add_number(std::uint32_t field, std::uint64_t value) {
    add_varint(std::uint64_t{field} << 3U);
    add_varint(value);
  }
  void add_bytes(std::uint32_t field, std::string_view bytes) {
    add_varint((std::uint64_t{field} << 3U) | 2U);
    add_with_length(bytes);
  }
  void add_with_length(std::string_view bytes) {
    add_varint(bytes.size());
    bytes_ += bytes;
  }
  void add_varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7U) bytes_ += static_cast<char>((value & 127U) | 128U);
    bytes_ += static_cast<char>(value);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// AttributeProto: its name, and one field of `oneof value`.
enum AttributeField : std::uint32_t { int32_value = 7, int64_value = 9, flag_value = 27, text_value = 29 };

class NodeMessage {
 public:
  NodeMessage(TaskId id, std::string_view name, ChakraNode::Type type) {
    message_.add_number(1, static_cast<std::uint64_t>(id));
    message_.add_bytes(2, name);
    message_.add_number(3, static_cast<std::uint64_t>(type));
  }
  void add_dependencies(const std::vector<TaskId>& tasks) {
    if (tasks.empty()) return;
    WireMessage packed;
    for (const TaskId task : tasks) packed.add_varint(static_cast<std::uint64_t>(task));
    constexpr std::uint32_t data_dependencies = 5;
    message_.add_bytes(data_dependencies, packed.bytes());
  }
  void add_duration(Seconds time) {
    constexpr std::uint32_t duration_micros = 7;
    message_.add_number(duration_micros, static_cast<std::uint64_t>(std::llround(time.value() * 1e6)));
  }
  void add(std::string_view name, AttributeField field, std::uint64_t value) {
    WireMessage attribute;
    attribute.add_bytes(1, name);
    attribute.add_number(field, value);
    add(attribute);
  }
  void add_text(std::string_view name, std::string_view value) {
    WireMessage attribute;
    attribute.add_bytes(1, name);
    attribute.add_bytes(text_value, value);
    add(attribute);
  }
  [[nodiscard]] const std::string& bytes() const { return message_.bytes(); }

 private:
  void add(const WireMessage& attribute) {
    constexpr std::uint32_t attributes = 10;
    message_.add_bytes(attributes, attribute.bytes());
  }
  WireMessage message_;
};

class ChakraExporter {
 public:
  ChakraExporter(const Scenario& scenario, const TrainWorkload& train, const Topology& topology)
      : model_(build_model(train.model, build_options(train, scenario.plan))),
        step_(build_step(scenario, train, model_, topology, Recipes::none, InsideLayers::seen)),
        graph_(step_graph(step_)),
        layout_(scenario.plan, scenario.cluster),
        transfer_of_task_(graph_.graph.tasks().size(), nullptr) {
    for (const StepGraph::Transfer& transfer : graph_.transfers) {
      transfer_of_task_[at_index(transfer.task)] = &transfer;
    }
    for (const Step::Transfer& transfer : step_.transfers) names_.push_back(transfer.name);
    for (const Step::RankClass& rank_class : step_.rank_classes) {
      for (const Step::Chunk& chunk : rank_class.chunks) {
        for (const InsideCall& call : chunk.inside) names_[at_index(call.transfer)] = call.name;
      }
    }
    ranks_.resize(step_.rank_classes.size());
    for (std::size_t gpu = 0; gpu < step_.class_of_rank.size(); ++gpu) {
      const int number = step_.class_of_rank[gpu];
      if (number >= 0) ranks_[at_index(number)].push_back(static_cast<int>(gpu));
    }
  }

  std::string run(ChakraRanks which, const std::function<void(const ChakraTrace&)>& write) {
    for (const std::vector<int>& ranks : ranks_) {
      set_rank(ranks.front());
      const std::vector<OwnTask> tasks = tasks_of_rank();
      if (which == ChakraRanks::of_classes) {
        write({ranks.front(), ranks, trace_of(tasks)});
        continue;
      }
      for (const int rank : ranks) {
        set_rank(rank);
        write({rank, {rank}, trace_of(tasks)});
      }
    }
    return group_ranks_.dump() + "\n";
  }

 private:
  /// A task, and those of the same rank that it waits for.
  struct OwnTask {
    TaskId task;
    std::vector<TaskId> after;
  };

  [[nodiscard]] const Step::Transfer* transfer(TaskId task) const {
    const StepGraph::Transfer* found = transfer_of_task_[at_index(task)];
    return found == nullptr ? nullptr : &step_.transfers[at_index(found->transfer)];
  }
  [[nodiscard]] const std::string& name_of(TaskId task) const {
    return names_[at_index(transfer_of_task_[at_index(task)]->transfer)];
  }
  [[nodiscard]] int rank_class_of(TaskId task) const { return graph_.graph.resource_of(task).rank_class; }
  [[nodiscard]] int stage(int rank_class) const { return step_.rank_classes[at_index(rank_class)].stage; }

  /// The GPU with which the rank exchanges messages, if it has one in that class.
  [[nodiscard]] std::optional<int> neighbour(int other) {
    const auto [known, is_new] = neighbours_.try_emplace(other);
    if (!is_new) return known->second;
    for (const int from : {stage(rank_class_), stage(other)}) {
      for (const std::vector<int>& pair : layout_.groups(GroupKind::neighbours, from)) {
        if (pair.size() != 2 || (pair[0] != rank_ && pair[1] != rank_)) continue;
        const int there = pair[0] == rank_ ? pair[1] : pair[0];
        if (step_.class_of_rank[at_index(there)] == other) return known->second = there;
      }
    }
    return std::nullopt;
  }

  /// Whether the task concerns the rank: that of its stream, or one in its transfer.
  [[nodiscard]] bool concerns(TaskId task) {
    if (rank_class_of(task) == rank_class_) return true;
    const StepGraph::Transfer* found = transfer_of_task_[at_index(task)];
    if (found == nullptr) return false;
    const Step::Transfer& moved = step_.transfers[at_index(found->transfer)];
    if (std::ranges::count(moved.parts[found->part].rank_classes, rank_class_) == 0) return false;
    return moved.kind != GroupKind::neighbours || neighbour(rank_class_of(task)).has_value();
  }

  void set_rank(int rank) {
    rank_ = rank;
    rank_class_ = step_.class_of_rank[at_index(rank)];
    neighbours_.clear();
  }

  /// The same for all ranks of a class.
  std::vector<OwnTask> tasks_of_rank() {
    std::vector<OwnTask> own;
    // Of each task, the rank's own ones that it waits for: its own, or those of tasks of others that it waits for.
    std::vector<std::vector<TaskId>> nearest(graph_.graph.tasks().size());
    std::map<ResourceId, TaskId> last_on_stream;
    for (TaskId task = 0; std::cmp_less(task, nearest.size()); ++task) {
      std::vector<TaskId>& after = nearest[at_index(task)];
      for (const TaskId earlier : graph_.graph.predecessors(task)) {
        const std::vector<TaskId>& of_earlier = nearest[at_index(earlier)];
        after.insert(after.end(), of_earlier.begin(), of_earlier.end());
      }
      if (!concerns(task)) {
        keep_one_each(after);
        continue;
      }
      const ResourceId resource = graph_.graph.tasks()[at_index(task)].resource;
      if (const auto last = last_on_stream.find(resource); last != last_on_stream.end()) after.push_back(last->second);
      last_on_stream[resource] = task;
      keep_one_each(after);
      own.push_back({task, std::exchange(after, {task})});
    }
    return own;
  }

  std::string trace_of(const std::vector<OwnTask>& tasks) {
    WireMessage trace, metadata;
    metadata.add_bytes(1, "0.0.4");  // the schema's version
    trace.add_with_length(metadata.bytes());
    for (const OwnTask& own : tasks) trace.add_with_length(node_of(own.task, own.after));
    return trace.bytes();
  }

  static void keep_one_each(std::vector<TaskId>& tasks) {
    std::ranges::sort(tasks);
    tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  }

  std::string node_of(TaskId task, const std::vector<TaskId>& after) {
    using enum ChakraNode::Type;
    const Block& block = graph_.graph.block_of(task);
    const Step::Transfer* moved = transfer(task);
    const bool is_message = moved != nullptr && moved->kind == GroupKind::neighbours;
    const bool sends = rank_class_of(task) == rank_class_;
    const auto type = moved == nullptr ? comp : !is_message ? comm_coll : sends ? comm_send : comm_recv;
    NodeMessage node(task, moved == nullptr ? block.name : name_of(task), type);
    node.add_dependencies(after);
    if (moved == nullptr) node.add_duration(block.uncontended);
    node.add("is_cpu_op", flag_value, block.category == Category::host ? 1 : 0);
    if (is_message) add_message(task, sends, moved->sent, node);
    if (moved != nullptr && !is_message) add_collective(task, *moved, node);
    return node.bytes();
  }

  void add_message(TaskId task, bool sends, Bytes size, NodeMessage& node) {
    const StepGraph::Transfer& found = *transfer_of_task_[at_index(task)];
    const auto& classes = step_.transfers[at_index(found.transfer)].parts[found.part].rank_classes;
    std::optional<int> there;
    for (const int other : classes) {
      if (!there && other != rank_class_ && (sends || other == rank_class_of(task))) there = neighbour(other);
    }
    const auto own = static_cast<std::uint64_t>(rank_), other = static_cast<std::uint64_t>(there.value_or(0));
    node.add("comm_size", int64_value, static_cast<std::uint64_t>(std::llround(size.value())));
    node.add("comm_src", int32_value, sends ? own : other);
    node.add("comm_dst", int32_value, sends ? other : own);
    node.add("comm_tag", int32_value, static_cast<std::uint64_t>(task));
  }

  /// The number of the rank's group, from 1: 0 is all ranks in ASTRA-sim.
  [[nodiscard]] int group_of_rank(GroupKind kind) {
    const int first_stage = layout_.stages(kind, stage(rank_class_)).front();
    const auto [known, is_new] = groups_.try_emplace({kind, first_stage});
    if (is_new) {
      known->second.resize(step_.class_of_rank.size());
      for (const std::vector<int>& group : layout_.groups(kind, first_stage)) {
        const auto number = static_cast<int>(group_ranks_.size()) + 1;
        group_ranks_[std::to_string(number)] = group;
        for (const int rank : group) known->second[at_index(rank)] = number;
      }
    }
    return known->second[at_index(rank_)];
  }

  void add_collective(TaskId task, const Step::Transfer& moved, NodeMessage& node) {
    const CollectiveNumber& collective = collective_of(name_of(task));
    const int of_stage = stage(rank_class_), group = group_of_rank(moved.kind);
    const auto members = static_cast<int>(group_ranks_[std::to_string(group)].size());
    const double factor = bus_bandwidth_factor(collective.operation, members);
    node.add("comm_type", int64_value, collective.number);
    node.add("comm_size", int64_value, static_cast<std::uint64_t>(std::llround(moved.sent.value() / factor)));
    node.add_text("pg_name", std::to_string(group));
    node.add_text("pg_desc", fmt::format("{}, stage {}", name(moved.kind), of_stage));
  }

  Model model_;
  Step step_;
  StepGraph graph_;
  RankLayout layout_;
  std::vector<const StepGraph::Transfer*> transfer_of_task_;
  std::vector<std::string> names_;       ///< by transfer; of collectives inside layers what each is
  std::vector<std::vector<int>> ranks_;  ///< by rank class
  std::map<std::pair<GroupKind, int>, std::vector<int>> groups_;  ///< by kind and first stage: each rank's number
  nlohmann::ordered_json group_ranks_ = nlohmann::ordered_json::object();
  int rank_ = 0, rank_class_ = 0;                 ///< of the trace in the making
  std::map<int, std::optional<int>> neighbours_;  ///< of the rank, by class
};

}  // namespace

std::string write_chakra_traces(const Scenario& scenario, ChakraRanks which,
                                const std::function<void(const ChakraTrace&)>& write) {
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr || has_servers(scenario.plan.sync.algorithm)) {
    const char* key = train == nullptr ? "workload" : "plan.sync.algorithm";
    const SourcePosition* where = scenario.where.find(key);
    throw ScenarioError(where != nullptr ? *where : scenario.where.document.where, key,
                        train == nullptr ? "no training" : "parameter servers",
                        "workload.train whose gradients go through collectives");
  }
  return ChakraExporter(scenario, *train, Topology::of(scenario.cluster)).run(which, write);
}

}  // namespace foretrain
