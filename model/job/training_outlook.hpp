// From a step to the whole training: failures, days, money, electricity.
#pragma once

#include <optional>

#include "model/goodput/checkpoint_interval.hpp"
#include "model/goodput/lifetime.hpp"
#include "model/parameter_server/store.hpp"
#include "model/result.hpp"
#include "model/scenario/scenario.hpp"
#include "model/training/outcome/checkpoint.hpp"

namespace foretrain {

/// Failures with collectives: any failure stops all, and what was done since the last checkpoint is lost.
/// `step`: that of TrainResult, with and without a checkpoint.
Lifetime lifetime_of(const Scenario& scenario, const TrainResult& train, const CheckpointCost& cost,
                     const CheckpointedStep& checkpointed);

/// Failures with parameter servers. A worker has no state: without it synchronous training waits, and others
/// go on with a worker less until there is another one. All workers need a server's keys. They wait for the server that
/// holds the same keys (replicated; each update is then sent on once more before workers have it: Li et al., "Scaling
/// distributed machine learning with the parameter server", OSDI 2014, section 4.3), or until the keys are read from
/// the last checkpoint. Work since that checkpoint is lost, in asynchronous training only that on these keys.
Lifetime lifetime_of(const Scenario& scenario, const TrainResult& train, const ParameterStore& store,
                     const ParameterStore::Bounds& bounds, Bytes state);

/// The best checkpoint interval of `life`, by simulation.
IntervalSearch search_interval(const Scenario& scenario, const Lifetime& life);

/// Fills TrainResult::goodput, and lets time to train and cost include it. `intervals`: where there are checkpoints.
void add_goodput(const Scenario& scenario, const Lifetime& life, std::optional<IntervalSearch> intervals,
                 Result& result);

/// Sets the intervals of the training's length and cost from the step's. Requires time_to_train.
void set_length_interval(Result& result);

/// Fills TrainResult::bill, where the training's length is stated.
///
/// A GPU draws its board's power while kernels run, and the static share of it (calibration, power.static_share) all
/// the time. The rest of the machines draws the same all the time; a data centre adds its PUE.
void add_bill(const Scenario& scenario, Result& result);

}  // namespace foretrain
