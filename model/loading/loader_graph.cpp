#include "model/loading/loader_graph.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "model/base/spread.hpp"

namespace foretrain {

namespace {

/// Rounds of all workers, and at least as many batches: the first half settles, the second is measured.
constexpr int least_batches = 64, rounds = 12, batches_with_spread = 2048;

class LoaderGraphBuilder {
 public:
  LoaderGraphBuilder(const LoaderPipeline& pipeline, Seconds consumer, const LoweredCollective* copy)
      : pipeline_(pipeline) {
    disk_ = builder_.add_resource({"storage", Resource::Kind::disk, 0, Resource::Order::urgent});
    cores_ =
        builder_.add_resource({"cores", Resource::Kind::host_thread, 0, Resource::Order::urgent, -1, pipeline.cores});
    pin_ = builder_.add_resource({"pinning thread", Resource::Kind::host_thread});
    copies_ = builder_.add_resource({"copies to the device", Resource::Kind::copy_engine});
    device_ = builder_.add_resource({"device", Resource::Kind::device_stream});
    process_ = builder_.add_resource({"training process", Resource::Kind::host_thread});
    for (int w = 0; w < pipeline.workers; ++w) {
      workers_.push_back(builder_.add_resource({"worker " + std::to_string(w), Resource::Kind::loader}));
    }
    const LoaderBatch& batch = pipeline.batch;
    wait_block_ = fixed("wait for storage", batch.wait, Category::data);
    disk_block_ = fixed("storage", batch.disk, Category::data);
    others_block_ = fixed("storage for others", batch.disk * (pipeline.sharers - 1.0), Category::data);
    pin_block_ = fixed("pin", batch.pin, Category::data);
    take_block_ = fixed("take", Seconds(0.0), Category::host);
    copy_block_ = copy == nullptr ? fixed("copy", batch.transfer, Category::data)
                                  : builder_.add_block({"copy", Category::data, batch.transfer, *copy});
    step_block_ = fixed("step", consumer + batch.device, Category::compute);
  }

  LoaderGraph run(int batches) && {
    for (int k = 0; k < batches; ++k) add_batch(k);
    result_.graph = std::move(builder_).build();
    return std::move(result_);
  }

 private:
  BlockId fixed(std::string name, Seconds time, Category category) {
    return builder_.add_block({std::move(name), category, time});
  }
  TaskId add(BlockId block, ResourceId resource, int batch, std::vector<TaskId> after) {
    std::erase(after, -1);
    return builder_.add_task({block, resource, batch}, after);
  }
  static TaskId earlier(const std::vector<TaskId>& tasks, int batch) {
    return batch < 0 ? -1 : tasks[static_cast<std::size_t>(batch)];
  }
  BlockId cpu_block(int batch) {
    if (pipeline_.spread > 0.0 || cpu_block_ < 0) {
      cpu_block_ = fixed("prepare", pipeline_.batch.cpu * compute_factor(0, batch, pipeline_.spread), Category::data);
    }
    return cpu_block_;
  }

  void add_batch(int k) {
    const int n = pipeline_.workers;
    const ResourceId worker = workers_[static_cast<std::size_t>(k % n)];
    // A batch is taken when the training process asks for the next one: after the step before, or one step earlier
    // where its copy runs beside that step.
    const int ahead = pipeline_.overlapped ? 2 : 1;
    const TaskId waited =
        add(wait_block_, worker, k, {earlier(ready_, k - n), earlier(taken_, k - n * pipeline_.prefetch)});
    TaskId read = waited;
    if (pipeline_.batch.disk > Seconds(0.0)) {
      read = add(disk_block_, disk_, k, {waited});
      if (pipeline_.sharers > 1.0) add(others_block_, disk_, k, {waited});
    }
    ready_.push_back(add(cpu_block(k), cores_, k, {read}));
    const TaskId pinned = add(pin_block_, pin_, k, {ready_.back()});
    taken_.push_back(add(take_block_, process_, k, {pinned, earlier(result_.steps, k - ahead)}));
    const ResourceId engine = pipeline_.overlapped ? copies_ : device_;
    const TaskId copied = add(copy_block_, engine, k, {taken_.back()});
    result_.steps.push_back(add(step_block_, device_, k, {copied}));
  }

  const LoaderPipeline& pipeline_;
  TaskGraph::Builder builder_;
  ResourceId disk_ = 0, cores_ = 0, pin_ = 0, copies_ = 0, device_ = 0, process_ = 0;
  std::vector<ResourceId> workers_;
  BlockId wait_block_ = 0, disk_block_ = 0, others_block_ = 0, pin_block_ = 0, take_block_ = 0, copy_block_ = 0,
          step_block_ = 0;
  BlockId cpu_block_ = -1;
  std::vector<TaskId> ready_, taken_;
  LoaderGraph result_;
};

}  // namespace

LoaderGraph build_loader_graph(const LoaderPipeline& pipeline, Seconds consumer, const LoweredCollective* copy) {
  const int n = pipeline.workers;
  const int least = pipeline.spread > 0.0 ? batches_with_spread : least_batches;
  const int half = (std::max(least, rounds * n) / 2 + n - 1) / n * n;
  LoaderGraph graph = LoaderGraphBuilder(pipeline, consumer, copy).run(2 * half + 1);
  graph.settled = half;
  return graph;
}

LoaderGraph build_loader_graph(const LoaderPipeline& pipeline, Seconds consumer, const LoweredCollective* copy,
                               Fidelity fidelity) {
  const bool alike = fidelity == Fidelity::estimate && !(pipeline.spread > 0.0);
  if (pipeline.workers > 0 && !alike) return build_loader_graph(pipeline, consumer, copy);
  const Seconds interval = std::max(loader_bounds(pipeline).longest(), consumer + pipeline.serial());
  return {graph_of_one({"step", Category::data, interval}, {"training process", Resource::Kind::host_thread}), {0}, 0};
}

Seconds loader_interval(const LoaderGraph& graph, const Execution& execution) {
  if (graph.steps.size() == 1) return execution.makespan;
  const auto end = [&](std::size_t step) { return execution.finish[static_cast<std::size_t>(graph.steps[step])]; };
  const auto settled = static_cast<std::size_t>(graph.settled);
  return (end(graph.steps.size() - 1) - end(settled)) / static_cast<double>(graph.steps.size() - 1 - settled);
}

Seconds estimated_interval(const LoaderPipeline& pipeline, Seconds consumer) {
  const LoaderGraph graph = build_loader_graph(pipeline, consumer, nullptr, Fidelity::estimate);
  return loader_interval(graph, run(graph.graph));
}

}  // namespace foretrain
