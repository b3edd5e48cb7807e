// Uncertainty of a prediction that depends on published constants alone.
#pragma once

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Sets the interval that nine of ten measured cases of the scenario's kind lie in. What kernels take is as uncertain
/// as the kind of stack is among the shipped tables (the widest of those that apply), what is waited for of
/// communication as collectives of its reach are. A step has the mean of both, weighted by their shares of it. On an
/// architecture of which no step was ever measured the interval is wider by half, and a warning says so.
void set_published_uncertainty(const Scenario& scenario, Result& result);

/// Whether a training step of the GPU's generation is among the shipped measurements; of a processor it always is.
bool has_measured_step(const Gpu& gpu);

/// Number of doublings, or halvings, from the nodes that a stack was learned on to so many.
double doublings_beyond(const LearnedRange& learned, int nodes);

/// Of a step of a learned stack: what runs left out lay within when it was learned. Wider by half for each doubling
/// of the machines beyond those that it was learned on, with a warning. False where no stack was learned.
bool set_learned_uncertainty(const Scenario& scenario, Result& result);

}  // namespace foretrain
