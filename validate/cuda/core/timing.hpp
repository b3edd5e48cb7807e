// How long something on a stream takes.
#pragma once

#include <functional>

#include "validate/cuda/core/device.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain::gpu {

/// Puts work on a stream. `turn` counts up from 0, so that operands can be rotated.
using Launch = std::function<void(cudaStream_t stream, int turn)>;

/// Seconds per launch, launched back to back: one value is the time of a batch between two events over its number of
/// launches. Batches are long enough (at least `least_batch`) that the events' resolution of half a microsecond and
/// the first launch's latency are below a thousandth, and no longer than the stream's queue of launches.
Sampled time_stream(const Stream& stream, const Launch& launch, const StoppingRule& rule,
                    Seconds least_batch = Seconds(2e-3));

/// Seconds of `work` on the host's clock; for what the host itself waits for.
Sampled time_host(const std::function<void()>& work, const StoppingRule& rule);

/// Copies of a set of operands that together exceed the L2 several times over: how many a rotation needs, at least 1.
int rotation_for(std::size_t bytes_per_turn);

}  // namespace foretrain::gpu
