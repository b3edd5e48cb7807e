#include "model/tasks/front_end.hpp"

#include <array>
#include <utility>

#include "model/cost/launches.hpp"

namespace foretrain {

std::vector<TaskId> FrontEnd::submit(ResourceId thread, ResourceId stream, const FrontEnd::Submission& submission) {
  if (path_ < 0) {
    path_ = builder_.add_resource({"launches", Resource::Kind::launch_path, 0, Resource::Order::at_once});
    const Seconds latency = launch_latency(constants_);
    Block block{"launch", Category::host, latency};
    if (recipes_ == Recipes::kept) block.recipe = recipe_of(HostWork{.action = HostWork::Action::launch});
    latency_ = builder_.add_block(std::move(block));
  }
  std::vector<TaskId>& ends = ends_[stream];
  std::vector<TaskId> after(submission.host_after.begin(), submission.host_after.end());
  const auto depth = static_cast<std::size_t>(constants_.queue_launches);
  if (ends.size() >= depth) after.push_back(ends[ends.size() - depth]);
  const TaskId dispatch = builder_.add_task({submission.dispatch, thread, submission.repetition}, after);
  const TaskId launch = builder_.add_task({latency_, path_, submission.repetition}, std::array{dispatch});

  std::vector<TaskId> tasks;
  std::vector<TaskId> start = {launch};
  start.insert(start.end(), submission.stream_after.begin(), submission.stream_after.end());
  for (const BlockId block : submission.work) {
    // Within a submission the stream's order is enough.
    tasks.push_back(builder_.add_task({block, stream, submission.repetition}, start));
    start.clear();
  }
  ends.push_back(tasks.back());
  last_of_thread_[thread][stream] = tasks.back();
  return tasks;
}

std::vector<TaskId> FrontEnd::launched_by(ResourceId thread) const {
  std::vector<TaskId> tasks;
  const auto found = last_of_thread_.find(thread);
  if (found == last_of_thread_.end()) return tasks;
  for (const auto& [stream, task] : found->second) tasks.push_back(task);
  return tasks;
}

}  // namespace foretrain
