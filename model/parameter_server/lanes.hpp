// Which workers of parameter servers are simulated as one.
#pragma once

#include <vector>

#include "model/parameter_server/store.hpp"

namespace foretrain {

/// Workers that compute and send at the same time.
using WorkerLane = std::vector<int>;

/// All workers in lanes of at most `size`, as even as they can be.
std::vector<WorkerLane> lanes_of(const ParameterStore& store, int size);

/// Workers of one speed under synchronous updates do everything at the same time: they are one lane. Others have a lane
/// each, until their messages, one to each server at a time, would be too many to simulate: then a lane is several
/// workers of one speed, so that there are about `most_messages` at a time. Lanes drift apart as workers do; with 64
/// workers, lanes of two change the step of the catalogue's asynchronous run by less than 1 %
/// (tests/sim/parameter_server_test.cpp).
std::vector<WorkerLane> usual_lanes(const ParameterStore& store);

}  // namespace foretrain
