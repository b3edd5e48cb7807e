// What each thing that is not known makes of a step, and the way of these numbers between processes.
#pragma once

#include <string>
#include <vector>

#include "reports/explain/what_if.hpp"
#include "reports/studies/plan_odds.hpp"

namespace foretrain {

Seconds estimated_step(const Scenario& scenario);

/// "better worse better worse …", as effects_from() takes them: of each unknown, estimated one standard deviation
/// better and worse. An unknown that leaves the scenario as it is costs no prediction.
std::string effects_text(const Scenario& scenario, const std::vector<UncertainResource>& unknown);

std::vector<double> numbers_of(const std::string& text);
std::vector<Effect> effects_from(const std::vector<double>& numbers);

/// As RunTasks says, shared out among `workers` processes; answers that have not come when the user interrupts stay
/// empty. Throws std::runtime_error with the message of a task that failed.
std::vector<std::string> answers_of_tasks(std::size_t count, int workers,
                                          const std::function<std::string(std::size_t)>& task);

}  // namespace foretrain
