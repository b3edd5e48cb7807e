// A scenario with one thing changed: each resource a little faster or slower, and what practitioners would try.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

struct WhatIf {
  std::string name;
  std::vector<std::string> overrides = {};  ///< as for --set; empty where hardware itself is scaled
  std::optional<Scenario> scenario = std::nullopt;
  int lost_machines = 0;  ///< from which it restarts

  std::optional<Result> result = std::nullopt;  ///< once it is predicted
  std::string why_not = {};                     ///< if there is no such scenario, or no result
  double speedup = 1.0;  ///< samples per second over the unchanged scenario's; of a collective, its time over this
};

/// Factor by which scaled_resources() makes a resource faster or slower.
inline constexpr double resource_scale = 1.1;

/// Every resource that the scenario has, by itself: first faster, then slower, two entries of one name.
std::vector<WhatIf> scaled_resources(const Scenario& scenario);

/// Work of a data loader on samples: one of scaled_resources(), where the scenario has a loader.
inline constexpr const char* sample_preprocessing = "sample preprocessing";

/// The scenario with a resource, by its name there, so many times as fast. Throws InternalError for another name.
Scenario with_speed(const Scenario& scenario, std::string_view resource, double speed);

/// Nine of ten normal deviates lie within so many standard deviations.
inline constexpr double ninth = 1.6449;

/// A resource of which no more is known than its speed within `spread`: one standard deviation of the logarithm.
struct UncertainResource {
  std::string name;
  double spread = 0.0;
  std::optional<Scenario> faster, slower;  ///< by one standard deviation; nothing where that changes nothing
  bool taught_by_runs = false;             ///< learned from a stack's own runs: speeds of kernels, dispatch and network
};

/// Resources whose uncertainty decides which plan is best (`uncertainty.*`): kernels by `kernels`, links and NICs as
/// collectives, dispatch as unfused frameworks. The same list for every scenario.
std::vector<UncertainResource> uncertain_resources(const Scenario& scenario, double kernels);

/// The scenario with devices and messages that take now more, now less; nothing where it says itself by how much, or
/// does not train.
std::optional<Scenario> with_usual_jitter(const Scenario& scenario);
inline constexpr Jitter usual_jitter = {.compute = 0.02, .network = 0.05};

/// The fidelity of some sixty what-ifs about a scenario that is predicted by `own`: the same, but estimates where a
/// simulation has many flows.
Fidelity what_if_fidelity(const Scenario& scenario, Fidelity own);

/// Loads the scenario with further overrides. Throws as load_scenario.
using Reload = std::function<Scenario(const std::vector<std::string>& overrides)>;

/// The scenario with these overrides, or why it cannot be.
WhatIf reloaded(std::string name, std::vector<std::string> overrides, const Reload& reload);

/// Changes that may make the scenario faster, without regard to their effect on the training's result: other
/// synchronisation, precision, execution, schedule, batch, and twice the network. Changes that the scenario has already
/// are left out; those that it cannot have say why.
std::vector<WhatIf> remedies(const Scenario& scenario, const Reload& reload);

/// The cost of failed parts until they are repaired: slow GPUs, cards, machines, switches. The scenario without each
/// part that a training's cluster has; none where its machines differ, or nothing is trained. If machines fail,
/// training restarts on those that are left, with as many whole replicas as these hold, each with the samples that it
/// had; else it goes on, slower.
std::vector<WhatIf> part_losses(const Scenario& scenario, const Reload& reload);

/// Ending in a line end; empty where there are none.
std::string to_text(const Result& whole, const std::vector<WhatIf>& losses);
std::string to_json(const Result& whole, const std::vector<WhatIf>& losses);

}  // namespace foretrain
