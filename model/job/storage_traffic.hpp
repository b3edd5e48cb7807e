// Storage traffic over the NICs that training uses: samples from a server of files,
// checkpoints to one or into other machines' memory.
#pragma once

#include <functional>

#include "model/job/job.hpp"

namespace foretrain {

/// The scenario beside its own storage traffic. `alone` predicts a scenario whose steps take `longer` times as long
/// beside a write.
Result beside_storage(const Scenario& scenario,
                      const std::function<Result(const Scenario& scenario, double longer)>& alone);

}  // namespace foretrain
