// Data loading by workers: they read samples from the page cache, decode them with real arithmetic, and hand batches
// over in memory. A consumer takes them in order, and bounded queues hold the workers back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/base/quantity.hpp"

namespace foretrain {

struct LoaderRun {
  int workers = 1;             ///< processes
  int prefetch = 2;            ///< batches that each may be ahead
  int batch = 16;              ///< samples
  int batches = 64;            ///< that are timed, after one round of all workers that is not
  int file = -1;               ///< samples lie in it one after the other
  std::size_t samples = 1;     ///< in the file
  std::size_t sample = 65536;  ///< bytes as stored
  Seconds step;                ///< time for which the consumer keeps each batch
};

/// Decodes one sample, each byte of which becomes a float: undoes a difference filter, as PNG's,
/// smooths and scales to floats. About as much work per byte as decoding a picture.
void decode_sample(std::span<const std::uint8_t> stored, std::span<float> decoded);

/// Time between batches, at the consumer. Throws std::system_error when a process cannot be started, std::runtime_error
/// when one fails, Interrupted when the user ends the work; no process outlives the call.
Seconds measure_loader(const LoaderRun& run);

/// Decoding rate of `workers` processes over that of one, without queues or memory to share. It is their number where
/// each has a core, and less where they share cores as threads.
double measure_parallel_decoding(int workers, std::size_t sample, Seconds duration);

}  // namespace foretrain
