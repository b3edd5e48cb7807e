#include "validate/export/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/graph/timeline.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/tasks/task_blocks.hpp"

namespace foretrain {

namespace {

/// A recipe's work in the words of scenarios. Throws NotReplayable.
struct Stated {
  Work operator()(const PricedOperator& priced) const {
    KernelWork work = stated(priced.op);
    if (const auto* streaming = std::get_if<Streaming>(&priced.op.work)) {  // which kernel of its kind moves the bytes
      work.fields.emplace("pattern", std::string(name(streaming->kind)));
      work.fields.emplace("precision", std::string(name(priced.op.precision)));
    }
    work.count = priced.count;
    work.predicted = priced.predicted;
    return work;
  }
  Work operator()(const CollectiveWork& work) const {
    if (work.method.empty()) throw NotReplayable("a collective that is no all-reduce");
    return work;
  }
  template <typename Other>
  Work operator()(const Other& work) const {
    return work;
  }
};

class Exporter {
 public:
  Exporter(const Scenario& scenario, const TaskGraph& graph) : scenario_(scenario), graph_(graph) {}

  replay::Graph run(const Execution& execution) && {
    result_.scenario = scenario_.name;
    result_.hardware = scenario_.cluster.node.name;
    const bool trains = std::holds_alternative<TrainWorkload>(scenario_.workload);
    result_.replicated = trains || std::holds_alternative<CollectiveWorkload>(scenario_.workload);
    result_.capture = trains && scenario_.plan.execution == ExecutionMode::cuda_graph;
    if (trains) see(scenario_.plan.data - 1);
    result_.predicted = execution.makespan.value();
    add_resources();
    add_blocks();
    add_tasks(execution);
    result_.gpus = gpus_;
    return std::move(result_);
  }

 private:
  void see(int gpu) { gpus_ = std::max(gpus_, gpu + 1); }

  void add_resources() {
    for (const Resource& resource : graph_.resources()) {
      replay::Resource added{resource.name, replay::Resource::Kind::stream, resource.rank_class};
      if (resource.kind == Resource::Kind::host_thread) added.kind = replay::Resource::Kind::host;
      if (resource.kind == Resource::Kind::launch_path) added.kind = replay::Resource::Kind::path;
      // A queue of copies is one by its name ("gpu0:p2p") where its kind does not say so.
      const bool copies =
          resource.name.starts_with("gpu") && resource.name.find(':') != std::string::npos && !is_stream(resource.name);
      if (resource.kind == Resource::Kind::copy_engine || copies) added.kind = replay::Resource::Kind::copies;
      see(added.device);
      result_.resources.push_back(std::move(added));
    }
  }

  /// Blocks that no task refers to are left out.
  void add_blocks() {
    number_of_block_.assign(graph_.blocks().size(), -1);
    for (const Task& task : graph_.tasks()) number_of_block_[static_cast<std::size_t>(task.block)] = 0;
    for (std::size_t i = 0; i < number_of_block_.size(); ++i) {
      if (number_of_block_[i] < 0) continue;
      number_of_block_[i] = static_cast<int>(result_.blocks.size());
      add_block(graph_.blocks()[i]);
    }
  }

  void add_block(const Block& block) {
    replay::Block added{block.name, std::string(name(block.category)), block.uncontended.value(), {}};
    if (block.recipe) {
      for (const RecipeWork& work : block.recipe->work) {
        try {
          added.work.push_back(std::visit(Stated{}, work));
        } catch (const NotReplayable& error) {
          throw ScenarioError(position_of(scenario_, "workload"), "workload",
                              fmt::format("{}: {} has no kernel to run", block.name, error.what()),
                              "an operator that foretrain-gpu runs");
        }
        see(added.work.back());
      }
    } else if (block.uncontended > Seconds(0.0)) {
      throw ScenarioError(position_of(scenario_, "workload"), "workload",
                          fmt::format("nothing is known that would do \"{}\"", block.name), "a plan without it");
    }
    result_.blocks.push_back(std::move(added));
  }

  void see(const Work& work) {
    if (const auto* copy = std::get_if<CopyWork>(&work)) {
      for (const std::string& place : {copy->from, copy->to}) {
        if (const auto gpu = number_behind(place, "gpu")) see(*gpu);
      }
    }
    if (const auto* collective = std::get_if<CollectiveWork>(&work)) see(collective->ranks - 1);
  }

  /// A queue that is full makes its host thread wait: the driver sees to that, so it is no event of a replay.
  [[nodiscard]] bool is_full_queue(TaskId before, TaskId task) const {
    const auto kind = [&](TaskId id) {
      return graph_.resources()[static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(id)].resource)].kind;
    };
    const Block& block = graph_.block_of(task);
    if (!block.recipe || block.recipe->work.empty()) return false;
    const auto* host = std::get_if<HostWork>(&block.recipe->work.front());
    return host != nullptr && host->action == HostWork::Action::dispatch && kind(before) != Resource::Kind::host_thread;
  }

  void add_tasks(const Execution& execution) {
    for (std::size_t i = 0; i < graph_.tasks().size(); ++i) {
      const Task& task = graph_.tasks()[i];
      result_.tasks.push_back({number_of_block_[static_cast<std::size_t>(task.block)],
                               task.resource,
                               {},
                               execution.start[i].value(),
                               execution.finish[i].value()});
    }
    for (TaskId task = 0; std::cmp_less(task, graph_.tasks().size()); ++task) {
      for (const TaskId before : graph_.predecessors(task)) {
        if (!is_full_queue(before, task)) result_.tasks[static_cast<std::size_t>(task)].after.push_back(before);
      }
    }
  }

  const Scenario& scenario_;
  const TaskGraph& graph_;
  replay::Graph result_;
  std::vector<int> number_of_block_;
  int gpus_ = 1;
};

}  // namespace

replay::Graph exported(const Scenario& scenario, const std::string& name, const TaskGraph& graph,
                       const Execution& execution, Fidelity fidelity) {
  replay::Graph result = Exporter(scenario, graph).run(execution);
  if (std::holds_alternative<TrainWorkload>(scenario.workload)) add_host_thread(scenario, result);
  result.name = name;
  result.fidelity = std::string(foretrain::name(fidelity));
  return result;
}

}  // namespace foretrain
