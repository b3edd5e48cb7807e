// A scenario with another plan for a while.
#pragma once

#include <utility>

#include "model/scenario/scenario.hpp"

namespace foretrain {

/// The scenario has `plan` for as long as this lives.
class OtherPlan {
 public:
  OtherPlan(Scenario& scenario, Plan plan) : scenario_(scenario), own_(std::exchange(scenario.plan, std::move(plan))) {}
  ~OtherPlan() { scenario_.plan = std::move(own_); }
  OtherPlan(const OtherPlan&) = delete;
  OtherPlan& operator=(const OtherPlan&) = delete;

 private:
  Scenario& scenario_;
  Plan own_;
};

}  // namespace foretrain
