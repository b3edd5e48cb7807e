#include "model/job/job_kinds.hpp"
#include "model/tasks/task_list.hpp"

namespace foretrain {

namespace {

class TaskListJob final : public Job {
 public:
  TaskListJob(const Scenario& scenario, Fidelity fidelity, Recipes recipes)
      : Job(scenario, fidelity),
        list_(build_task_list(scenario, std::get<TasksWorkload>(scenario.workload), topology_, recipes)) {}

  [[nodiscard]] const TaskGraph& graph() const override { return list_.graph; }

  [[nodiscard]] Result read(const Execution& execution, const Executor&) const override {
    Result result = named_result();
    auto& r = result.work.emplace<TasksResult>();
    r.time = execution.makespan;
    for (const auto& [id, task] : list_.last) r.finish[id] = execution.finish[static_cast<std::size_t>(task)];
    r.calls = list_.calls;
    return result;
  }

 private:
  TaskList list_;
};

}  // namespace

std::unique_ptr<Job> make_task_list_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  return std::make_unique<TaskListJob>(scenario, fidelity, recipes);
}

}  // namespace foretrain
