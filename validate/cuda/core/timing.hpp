// Timing of work on a stream, and kernels that do nothing, or nothing for a while.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "model/base/quantity.hpp"
#include "validate/cuda/core/device.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain::gpu {

inline constexpr double longest_hold_s = 20e-3;

/// Puts a kernel on the stream that does nothing for this long (longest_hold_s at most): what is put behind it
/// at the same time is there when its turn comes.
void keep_busy(Seconds duration, cudaStream_t stream);

/// Number of operations of a batch that takes `least`, when one takes `once` seconds: at least 1, at most `most`.
int batch_of(double once, Seconds least, int most);

/// Puts work on a stream. `turn` counts up from 0, so that operands can be rotated.
using Launch = std::function<void(cudaStream_t stream, int turn)>;

/// Seconds per launch, launched back to back: one value is the time of a batch between two events over its number of
/// launches. Batches are long enough (at least `least_batch`) that the events' resolution of half a microsecond is
/// below a thousandth, and no longer than the stream's queue of launches. The device is kept busy until the host has
/// handed a batch over, so that short kernels are not timed by their launches (as nvbench's blocking kernel does).
/// If the host cannot get ahead, the result's note says so (host_bound_note). `kernels`: of one launch.
Sampled time_stream(const Stream& stream, const Launch& launch, const StoppingRule& rule,
                    Seconds least_batch = Seconds(2e-3), int kernels = 1);

/// The same for so long, `budget`, that the board finds the clocks that its power allows: only the second half counts.
Sampled time_sustained(const Stream& stream, const Launch& launch, Seconds budget, int kernels);

/// Seconds of a launch that finds nothing of its operands in the L2, which is overwritten before each. The median of a
/// few, less what the events around it take with nothing between them.
Seconds time_flushed(const Stream& stream, const Launch& launch);

/// Seconds of `work` on the host's clock; for what the host itself waits for.
Sampled time_host(const std::function<void()>& work, const StoppingRule& rule);

/// Brings the device out of the low clocks in which it waits: keeps it busy for this long.
void warm_clocks(Seconds duration);

/// One block of one warp that returns at once.
void launch_empty(cudaStream_t stream);
/// One block of one warp that waits for this many cycles of its multiprocessor.
void launch_spin(std::int64_t cycles, cudaStream_t stream);

}  // namespace foretrain::gpu
