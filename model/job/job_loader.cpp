#include <array>
#include <string>

#include "model/collectives/contention.hpp"
#include "model/job/job_kinds.hpp"
#include "model/loading/loader_graph.hpp"
#include "model/training/pricing/train_loader.hpp"

namespace foretrain {

namespace {

class LoaderJob final : public Job {
 public:
  LoaderJob(const Scenario& scenario, Fidelity fidelity) : Job(scenario, fidelity) {
    const auto& workload = std::get<LoaderWorkload>(scenario.workload);
    LoaderUse use;
    use.batch = workload.batch;
    LoweredCollective copy;
    const Bytes size = delivered_sample(workload.loader) * workload.batch;
    const bool moves = size > Bytes(0.0) && workload.loader.pinned && !workload.loader.transfer;
    if (moves) {
      copy = copies_to_devices(size, topology_, std::array{0});
      use.transfer = uncontended_time(copy, topology_, scenario.background);
    }
    pipeline_ = loader_pipeline(workload.loader, use, scenario.cluster.node, scenario.calibration);
    graph_ = build_loader_graph(pipeline_, Seconds(0.0), moves ? &copy : nullptr, fidelity);
    if (workload.loader.dataset) batch_ = workload.loader.dataset->sample * workload.batch;
  }

  [[nodiscard]] const TaskGraph& graph() const override { return graph_.graph; }

  [[nodiscard]] Result read(const Execution& execution, const Executor&) const override {
    Result result = named_result();
    const bool serial = pipeline_.workers == 0;
    const std::string bound = serial ? "one process" : std::string(loader_bounds(pipeline_).bottleneck());
    result.work = OperatorResult{loader_interval(graph_, execution), Flops(0.0), batch_, bound};
    return result;
  }

 private:
  LoaderPipeline pipeline_;
  LoaderGraph graph_;
  Bytes batch_;  ///< as it lies in storage
};

}  // namespace

std::unique_ptr<Job> make_loader_job(const Scenario& scenario, Fidelity fidelity) {
  return std::make_unique<LoaderJob>(scenario, fidelity);
}

}  // namespace foretrain
