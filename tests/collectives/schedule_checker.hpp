// Symbolic execution of a schedule. The state is, for every participant and chunk, how often each rank's contribution
// is in it: a copy replaces the counts, a reduction adds them. A schedule is right when every rank ends with exactly
// the counts that the operation promises, whatever the message holds.
#pragma once

#include <string>

#include "model/collectives/schedule.hpp"

namespace foretrain::test {

/// The checker's finding; empty when every rank ends with every contribution exactly once (for the operation).
std::string check_schedule(const Schedule& schedule, CollectiveOperation operation);

}  // namespace foretrain::test
