// Several training jobs on one fabric: their graphs run together, so that their flows share links.
#pragma once

#include "model/job/job.hpp"

namespace foretrain {

/// All jobs begin a step at the same moment, and then one step after the other, until that whose step is the longest
/// has done three. What a job takes is its step of median length among those that had ended by then; of the scenario's
/// own that step is the result. Jobs whose steps are so short that they would have to do more than 500 stop there. The
/// result then warns that the rest of the longest one's steps has gone on without them. For fidelities that simulate.
Result run_together(const Scenario& scenario, Fidelity fidelity, Detail detail);

}  // namespace foretrain
