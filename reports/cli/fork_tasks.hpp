// Tasks shared out among forked processes, whose answers are texts.
#pragma once

#include "model/planning/plan_search.hpp"

namespace foretrain {

/// As RunTasks says, in `workers` processes. When the user interrupts the work (validate/measure/signals.hpp), answers
/// that have not come yet stay empty. `done`: told how many answers there are. Throws std::runtime_error when a process
/// dies over its task. Call it while this process has a single thread.
std::vector<std::string> run_tasks_in_processes(std::size_t count, const std::function<std::string(std::size_t)>& task,
                                                int workers, const std::function<void(std::size_t)>& done = {});

}  // namespace foretrain
