// The host thread of a training step: a step's graph holds what its kernels take, or the host where that is longer; a
// replay wants to know both.

#include <map>
#include <utility>

#include "model/cost/launches.hpp"
#include "model/parallelism/layout.hpp"
#include "validate/export/export.hpp"

namespace foretrain {

namespace {

constexpr double longer = 1.0 + 1e-9;  // than rounding

/// Launches of a block, and what they were predicted to take on the device.
struct Launches {
  int count = 0;
  Seconds device;
};

Launches launches_of(const replay::Block& block) {
  Launches launches;
  for (const Work& work : block.work) {
    const auto* kernel = std::get_if<KernelWork>(&work);
    if (kernel == nullptr) continue;
    launches.count += kernel->count;
    launches.device += kernel->predicted * static_cast<double>(kernel->count);
  }
  return launches;
}

class HostThread {
 public:
  HostThread(const Scenario& scenario, replay::Graph& graph)
      : scenario_(scenario), graph_(graph), thread_(static_cast<int>(graph.resources.size())) {
    graph_.resources.push_back({"dispatch", replay::Resource::Kind::framework, 0});
  }

  void run() && {
    std::vector<int> number(graph_.tasks.size());  // of each task, once dispatches stand before it
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      replay::Task task = graph_.tasks[i];
      for (int& before : task.after) before = number[static_cast<std::size_t>(before)];
      if (const int block = dispatch_of(task.block); block >= 0) {
        const double end = task.start + graph_.blocks[static_cast<std::size_t>(block)].predicted;
        tasks_.push_back({block, thread_, {}, task.start, end});
        task.after.push_back(static_cast<int>(tasks_.size()) - 1);
      }
      number[i] = static_cast<int>(tasks_.size());
      tasks_.push_back(std::move(task));
    }
    add_between_steps();
    graph_.tasks = std::move(tasks_);
  }

 private:
  /// The block that hands this one over; -1 where it launches nothing.
  int dispatch_of(int number) {
    const auto [known, is_new] = dispatches_.emplace(number, -1);
    if (!is_new) return known->second;
    const replay::Block& block = graph_.blocks[static_cast<std::size_t>(number)];
    const Launches launches = launches_of(block);
    if (launches.count == 0) return -1;
    const Plan& plan = scenario_.plan;
    Seconds time = host_dispatch_time(launches.count, plan.execution, scenario_.calibration.host) *
                   gpus_of_process(plan, scenario_.cluster);
    // Blocks that outlast their kernels were priced at their dispatch, with the framework's own code.
    if (block.predicted > launches.device.value() * longer) time = Seconds(block.predicted);
    return known->second = add_block(block.name + " dispatch", time, launches.count);
  }

  int add_block(const std::string& name, Seconds time, int kernels) {
    HostWork work;
    work.action = HostWork::Action::dispatch;
    work.duration = time;
    work.kernels = kernels;
    graph_.blocks.push_back({name, "host", time.value(), {work}});
    return static_cast<int>(graph_.blocks.size()) - 1;
  }

  void add_between_steps() {
    const Seconds time(scenario_.calibration.host.step_us * 1e-6);
    if (time <= Seconds(0.0)) return;
    std::vector<bool> awaited(tasks_.size());
    for (const replay::Task& task : tasks_) {
      for (const int before : task.after) awaited[static_cast<std::size_t>(before)] = true;
    }
    std::vector<int> ends;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (!awaited[i] && tasks_[i].resource != thread_) ends.push_back(static_cast<int>(i));
    }
    const double start = graph_.predicted;
    graph_.predicted += time.value();
    const int block = add_block("between steps", time, 0);
    tasks_.push_back({block, thread_, std::move(ends), start, graph_.predicted});
  }

  const Scenario& scenario_;
  replay::Graph& graph_;
  int thread_;
  std::vector<replay::Task> tasks_;
  std::map<int, int> dispatches_;  ///< of each block
};

}  // namespace

void add_host_thread(const Scenario& scenario, replay::Graph& graph) {
  if (!graph.capture) HostThread(scenario, graph).run();
}

}  // namespace foretrain
