// How the passes of a pipeline follow each other: a recursion over stages and passes, without a graph.
#pragma once

#include <vector>

#include "model/training/step.hpp"

namespace foretrain {

/// When each stage begins its last backward pass of each chunk, and when it has finished everything.
struct PipelineTimes {
  std::vector<std::vector<Seconds>> last_backward_start;  ///< [stage][chunk]
  std::vector<Seconds> done;                              ///< [stage]
};

/// `with_boundary` = false: activations move between stages in no time.
PipelineTimes pipeline_times(const Step& step, bool with_boundary);

/// The backward pass of the last micro-batch: with overlap it runs bucket by bucket, slowed by the collectives beside
/// it.
Segment last_backward_of(const Step& step, const ModelChunk& chunk);

/// A transfer's time when alone; zero for index -1.
Seconds transfer_time(const Step& step, int index);

}  // namespace foretrain
