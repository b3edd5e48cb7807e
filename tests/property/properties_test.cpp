// Properties of every prediction, on random scenarios. FORETRAIN_SEED and FORETRAIN_TRIES try others, and more.
#include "tests/catch.hpp"
#include "tests/property/properties.hpp"

using namespace foretrain::test;

TEST_CASE("property: random plans", "[plans]") {
  const NamedProperty properties[] = {
      {"an estimate is no longer than the simulation", estimate_is_below_flows},
      {"where nothing meets, steps take as long as flows", steps_take_as_long_as_flows},
      {"more bandwidth is never slower", more_bandwidth_is_not_slower},
      {"fewer faults are never slower", fewer_faults_are_not_slower},
      {"less traffic of others is never slower", less_background_is_not_slower},
      {"a slower worker never makes a step faster", slow_workers_are_not_faster},
      {"idle nodes change nothing", idle_nodes_change_nothing},
      {"renumbered nodes change nothing", renumbered_nodes_change_nothing},
      {"twice every rate is half the time", twice_every_rate_is_half_the_time},
      {"auto is no slower than a named algorithm", automatic_is_not_slower_than_named},
      {"a breakdown adds up, and what is exposed is part of the total", parts_add_up},
      {"memory falls with ZeRO and grows with the batch", memory_follows_zero_and_batch},
  };
  hold_for_all(properties, random_plan, scenarios_to_try(300), seed_to_use(2026));
}

TEST_CASE("property: random collectives", "[collectives]") {
  const NamedProperty properties[] = {
      {"an estimate is no longer than the simulation", estimate_is_below_flows},
      {"where nothing meets, steps take as long as flows", steps_take_as_long_as_flows},
      {"more bandwidth is never slower", more_bandwidth_is_not_slower},
      {"fewer faults are never slower", fewer_faults_are_not_slower},
      {"less traffic of others is never slower", less_background_is_not_slower},
      {"twice every rate is half the time", twice_every_rate_is_half_the_time},
      {"auto is no slower than a named algorithm", automatic_is_not_slower_than_named},
  };
  hold_for_all(properties, random_collective, scenarios_to_try(300), seed_to_use(2026));
}
