// The result of training, whichever way its gradients went.
#pragma once

#include <map>
#include <string>

#include "model/hardware/topology.hpp"
#include "model/result.hpp"
#include "model/training/step.hpp"

namespace foretrain {

/// Fills result.train: the step, its parts and its communication as found in an execution, and what follows from them
/// and from the plan: rates, memory, time to train and cost, with the warnings that belong to them.
void fill_training(Result& result, const Scenario& scenario, const Topology& topology, const Model& model,
                   const Step& step, Seconds step_time, const Breakdown& breakdown,
                   std::map<std::string, CommunicationTime> communication);

}  // namespace foretrain
