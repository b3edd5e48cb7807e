// Segments that a framework's caching allocator requests, after PyTorch's (c10/cuda/CUDACachingAllocator.cpp), and
// buffers that tensor ranks have freed and it cannot reuse yet.
#pragma once

#include <vector>

#include "model/base/quantity.hpp"
#include "model/scenario/scenario.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// `count` tensors of one size.
struct TensorSizes {
  Bytes size;
  double count = 1.0;
};

/// Segments that tensors take which stay for the whole training, allocated size by size. A tensor occupies a multiple
/// of 512 bytes. The driver is asked for 2 MiB for blocks of up to 1 MiB, 20 MiB for blocks below 10 MiB, which share
/// these, and the block rounded up to a multiple of 2 MiB above that.
Bytes segments_of(const std::vector<TensorSizes>& tensors);

/// PyTorch's allocator gives a block that a collective used to others once the collective is over on the GPU (c10d,
/// ProcessGroupNCCL: recordStream). The host frees what tensor ranks gathered, and what they are about to scatter, as
/// far ahead of the GPU as the queue of launches is long: of whole hidden states, a number that is the trainer's
/// (key pending_stream_buffers) and not the model's.
///
/// The host gets as far ahead where its GPU is slower: where a block's pass takes the device longer than the trainer's
/// code takes the host. Without pipelines it always does, between one step's end and the next; in pipelines also while
/// GPUs wait for other stages, the longer the more there are (with 8 and more always). Where no forward pass follows a
/// backward pass it gets less far: at most one micro-batch a stage. The shares are fitted to the 489 plans of
/// cases_nanotron_h100.csv together (assumption elsewhere).
Bytes pending_stream_buffers(const Scenario& scenario, const TrainWorkload& train, const Layer& block);

}  // namespace foretrain
