// The cost of jitter of devices and networks: all wait for the slowest.
#pragma once

#include <functional>
#include <vector>

#include "model/graph/execution.hpp"
#include "model/hardware/topology.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

/// The lengths of some steps (until the optimizer is done) that differ at random alone, ascending. In each step every
/// device has a factor of its own on the time of its kernels, and every group's flows one on the time that they take:
/// lognormal, of mean 1 (compute_factor()). Ranks of a rank class do not wait for each other before they meet; as they
/// meet in every step, the slowest of them stands for all, and likewise the slowest of the groups. With pipelines that
/// is a little too much: slow devices of two stages are taken to be on the way of the same micro-batches.
///
/// Shared parts multiply the factors of their devices: a node's and a rack's, lognormal of mean 1 as well (GPUs of
/// a node and of a cabinet vary together with its cooling: Sinha et al., "Not all GPUs are created equal", SC 2022). A
/// device that is throttled takes 1 ÷ speed as long through the whole step, and minutes last for many steps. Each step
/// drawn is another moment of the training, in which the number of throttled devices is binomial, so that their mean is
/// what throttling costs the training. The numbers are spread evenly over the steps drawn: how rarely any device is
/// throttled is then right to one part in as many.
std::vector<Seconds> steps_with_jitter(const Step& step, const Jitter& jitter, const Topology& topology,
                                       const std::function<Execution(const TaskGraph&)>& execute);

/// So many of `devices` are throttled at once, each for `share` of its time, where `level` (0 to 1) of all moments have
/// fewer or as many: the binomial distribution's quantile.
int throttled_at_once(int devices, double share, double level);

}  // namespace foretrain
