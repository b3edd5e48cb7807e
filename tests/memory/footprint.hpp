// A scenario's memory, for tests.
#pragma once

#include "model/memory/memory.hpp"
#include "model/parallelism/layout.hpp"
#include "model/scenario/load/load.hpp"
#include "model/workload/build.hpp"

namespace foretrain::test {

struct Training {
  explicit Training(const std::string& name, const std::vector<std::string>& overrides = {})
      : scenario(load_scenario(name, overrides)),
        train(std::get<TrainWorkload>(scenario.workload)),
        model(build_model(train.model, build_options(train, scenario.plan))) {}

  [[nodiscard]] MemoryFootprint footprint() const { return memory_footprint(scenario, train, model); }
  [[nodiscard]] MemoryTimeline timeline() const { return memory_timeline(scenario, train, model); }

  Scenario scenario;
  TrainWorkload train;
  Model model;
};

}  // namespace foretrain::test
