// Properties of every prediction, on random scenarios. FORETRAIN_SEED and FORETRAIN_TRIES try others, and more;
// FORETRAIN_PROPERTY those alone whose names have it.
#include "tests/property/properties.hpp"

#include "model/base/process.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain::test;

namespace {

/// Times of all plans, predicted one after the other in a process that did nothing else.
void predict_in_order(const std::vector<foretrain::Scenario>& plans, bool backwards, std::span<double> times) {
  foretrain::Process child = foretrain::Process::copy([&] {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::size_t plan = backwards ? plans.size() - 1 - i : i;
      times[plan] = foretrain::estimate(plans[plan]).time().value();
    }
  });
  CHECK(child.wait().well());
}

const NamedProperty properties[] = {
    {"an estimate is no longer than the simulation", estimate_is_below_flows},
    {"where nothing meets, steps take as long as flows", steps_take_as_long_as_flows},
    {"auto is no slower than a named algorithm", automatic_is_not_slower_than_named},
    {"less traffic of others is never slower", less_background_is_not_slower},
    {"fewer faults are never slower", fewer_faults_are_not_slower},
    {"more bandwidth is never slower", more_bandwidth_is_not_slower},
    {"twice every rate is half the time", twice_every_rate_is_half_the_time},
    {"a tree of one leaf is one switch", one_leaf_is_one_switch},
    {"idle nodes change nothing", idle_nodes_change_nothing},
    {"renumbered nodes change nothing", renumbered_nodes_change_nothing},
    {"a breakdown adds up, and what is exposed is part of the total", parts_add_up},
    {"memory falls with ZeRO and grows with the batch", memory_follows_zero_and_batch},
};
constexpr std::size_t of_collectives = 8;  ///< the first

}  // namespace

TEST_CASE("property: a stage of a sweep is the same point alone", "[sweep]") {
  // Caches of earlier points change no bit: each has others before it in the two orders.
  Random random(seed_to_use(2026));
  std::vector<foretrain::Scenario> plans;
  const auto count = static_cast<std::size_t>(scenarios_to_try(100));
  while (plans.size() < count) plans.push_back(scenario_of(random_plan(random)));
  const foretrain::SharedMemory memory(2 * count * sizeof(double));
  const std::span<double> times = memory.as<double>(2 * count);
  predict_in_order(plans, false, times.first(count));
  predict_in_order(plans, true, times.last(count));
  for (std::size_t i = 0; i < count; ++i) CHECK(times[i] == times[count + i]);
}

TEST_CASE("property: random plans", "[plans]") {
  hold_for_all(properties, random_plan, scenarios_to_try(300), seed_to_use(2026));
}

TEST_CASE("property: unequal workers of servers", "[servers]") {
  const NamedProperty property[] = {
      {"the more workers are slow, and the slower they are, the longer a step", slower_workers_are_not_faster}};
  hold_for_all(property, random_plan, scenarios_to_try(100), seed_to_use(2026));
}

TEST_CASE("property: random collectives", "[collectives]") {
  hold_for_all(std::span(properties).first(of_collectives), random_collective, scenarios_to_try(300),
               seed_to_use(2026));
}
