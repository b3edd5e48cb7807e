// Properties of all scenarios: one function a property.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tests/property/random_scenarios.hpp"

namespace foretrain::test {

struct NamedProperty {
  const char* name;
  Property property;
};

/// Number of scenarios, and the seed: environment variables FORETRAIN_TRIES and FORETRAIN_SEED may say.
int scenarios_to_try(int usual);
unsigned seed_to_use(unsigned usual);
/// FORETRAIN_PROPERTY: a part of the names of those to check.
bool is_wanted(std::string_view property);

/// Fails for each property that some scenario violates, and prints the smallest scenario that does.
void hold_for_all(std::span<const NamedProperty> properties, Settings (*random_settings)(Random&), int scenarios,
                  unsigned seed);

Violation estimate_is_below_flows(const Settings& settings);
Violation steps_take_as_long_as_flows(const Settings& settings);
Violation more_bandwidth_is_not_slower(const Settings& settings);
Violation fewer_faults_are_not_slower(const Settings& settings);
Violation less_background_is_not_slower(const Settings& settings);
Violation idle_nodes_change_nothing(const Settings& settings);
Violation renumbered_nodes_change_nothing(const Settings& settings);
Violation one_leaf_is_one_switch(const Settings& settings);
Violation twice_every_rate_is_half_the_time(const Settings& settings);
Violation automatic_is_not_slower_than_named(const Settings& settings);

// Of trainings alone.
Violation parts_add_up(const Settings& settings);
Violation memory_follows_zero_and_batch(const Settings& settings);
Violation slower_workers_are_not_faster(const Settings& settings);  ///< than fewer, and less slow ones

/// Of every two GPUs, by the library's rule, which asks for bytes a second: a threshold, beyond which more kernels are
/// slowed.
std::vector<double> channels_of(const Cluster& cluster);

}  // namespace foretrain::test
