// Checkpoints: the state of the training on its way to storage and back.
#pragma once

#include "model/training/step/step.hpp"

namespace foretrain {

/// A checkpoint is written in two parts: all GPUs copy their state to their hosts, over the links that training uses as
/// well; then each host writes what its GPUs have copied. Every number of the state is written once: ranks that hold
/// the same parameters share them out evenly (Megatron-LM's fully parallel saving, PyTorch's distributed checkpoints).
struct CheckpointCost {
  Bytes state;             ///< of the whole training
  Bytes per_machine;       ///< of the machine with the most
  LoweredCollective copy;  ///< from every GPU to its host
  Seconds copy_time;       ///< by itself
  Seconds write;           ///< from that machine to storage, or into the next machine's memory
  Seconds read;            ///< from storage, before GPUs copy and exchange it; nothing where memory holds it
  Seconds fetch;           ///< for a new machine from the next one's memory
  /// GPUs copy what they saved back, and replicas gather what each of them has read.
  Seconds spread;
};

/// Time of a machine for its part of a checkpoint while so many do the same, each with so many writers or readers.
Seconds storage_time(Storage storage, Bytes per_machine, int machines, int requests, bool write);

/// Weights, states and master weights of so many parameters.
Bytes checkpoint_state(const TrainWorkload& train, const Plan& plan, double parameters);

/// State: weights, the optimizer's states, and fp32 master weights where there are any; frozen weights are not saved.
/// Storage that is a network's is shared by all machines, a machine's own by its GPUs.
CheckpointCost checkpoint_cost(const Scenario& scenario, const TrainWorkload& train, const Step& step,
                               const Topology& topology);

/// A step that has a checkpoint, and the mean of `every` steps. Synchronous: training waits for the copy and the write.
/// Asynchronous: the copy begins with the step and must be done when the optimizer changes the weights. The write goes
/// on beside the next steps, which take longer where it meets their messages, and the next checkpoint waits for its
/// end.
struct CheckpointedStep {
  /// Step times beside a checkpoint: the graph to its end, without and with the copy beside it; and how many times
  /// as long a step takes beside the write.
  struct Times {
    Seconds plain, with_copy;
    double write = 1.0;
  };
  Seconds step, mean;
};
CheckpointedStep checkpointed_step(const Checkpoint& checkpoint, const CheckpointCost& cost, Seconds step,
                                   const CheckpointedStep::Times& beside);

}  // namespace foretrain
