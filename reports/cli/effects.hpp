// What each thing that is not known makes of a step, and the way of these numbers between processes.
#pragma once

#include <string>
#include <vector>

#include "model/planning/plan_search.hpp"
#include "reports/explain/what_if.hpp"
#include "reports/studies/plan_odds.hpp"

namespace foretrain {

Seconds estimated_step(const Scenario& scenario);

/// "better worse better worse …", as effects_from() takes them: of each unknown of a scenario whose step is estimated
/// as `unchanged`, one standard deviation better and worse. An unknown that leaves the scenario as it is costs no
/// prediction.
std::string effects_text(Seconds unchanged, const std::vector<UncertainResource>& unknown);

std::vector<double> numbers_of(const std::string& text);
std::vector<Effect> effects_from(const std::vector<double>& numbers);

/// Tasks are shared out among `workers` processes; answers that have not come when the user interrupts stay empty. It
/// throws std::runtime_error with the message of a task that failed.
RunTasks tasks_shared_out(int workers);

}  // namespace foretrain
