// What it costs that devices and networks are not equally fast all the time: all wait for the slowest.
#pragma once

#include <functional>
#include <vector>

#include "model/graph/execution.hpp"
#include "model/hardware/cluster.hpp"
#include "model/training/step.hpp"

namespace foretrain {

/// The lengths of some steps (until the optimizer is done) that differ by chance alone, ascending. In each step every
/// device has a factor of its own on the time of its kernels, and every group's flows one on the time that they take:
/// lognormal, of mean 1 (compute_factor()). Ranks of a lane do not wait for each other before they meet; as they meet
/// in every step, the slowest of them stands for all, and likewise the slowest of the groups. With pipelines that is a
/// little too much: slow devices of two stages are taken to be on the way of the same micro-batches.
std::vector<Seconds> steps_with_jitter(const Step& step, const Jitter& jitter,
                                       const std::function<Execution(const TaskGraph&)>& execute);

}  // namespace foretrain
