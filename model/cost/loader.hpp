// The throughput of an input pipeline, and its bottleneck.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/cost/calibration.hpp"
#include "model/hardware/cluster.hpp"
#include "model/workload/data_loader.hpp"

namespace foretrain {

/// Demand of one batch of one training process.
struct LoaderBatch {
  Seconds wait;      ///< the worker waits for storage that serves others at the same time
  Seconds disk;      ///< storage works for it alone
  Seconds cpu;       ///< one core's time
  Seconds pin;       ///< a thread copies it to pinned memory
  Seconds transfer;  ///< to the device
  Seconds device;    ///< decoding there

  /// Time of one worker when no other worker runs.
  [[nodiscard]] Seconds worker() const { return wait + disk + cpu; }
};

/// The pipeline of one training process, costed.
struct LoaderPipeline {
  int workers = 0;
  int cores = 1;  ///< that its workers share
  int prefetch = 2;
  double sharers = 1.0;     ///< training processes that read from the same storage
  bool overlapped = false;  ///< copies run beside the step before
  double spread = 0.0;      ///< standard deviation of a batch's time on a core, over its mean
  LoaderBatch batch;
  Seconds restart;         ///< starting workers anew every epoch, a step's share
  Bytes memory;            ///< of all workers and their batches on one machine
  double hit_share = 0.0;  ///< samples that are in the page cache, over all

  /// Time that each step spends on its own data: all of it without workers, else a blocking copy and decoding on the
  /// device.
  [[nodiscard]] Seconds serial() const;
};

/// The shortest time between two batches that each part of the pipeline allows.
struct LoaderBounds {
  /// A batch takes a worker (wait + disk + cpu), and there are `workers` of them; it holds one of workers · prefetch
  /// places until it is pinned.
  Seconds workers;
  Seconds disk;     ///< storage is busy for all that share it
  Seconds cores;    ///< cores are busy
  Seconds pinning;  ///< one thread copies to pinned memory
  Seconds copies;   ///< copies that overlap with the step follow each other

  [[nodiscard]] Seconds longest() const;
  /// "workers", "storage", "cores", "pinning" or "copies".
  [[nodiscard]] std::string_view bottleneck() const;
};

/// Closed form without spread: a line of stations works as fast as its slowest, whatever the depth of its queues
/// (Dallery and Gershwin, "Manufacturing flow line systems", 1992, on deterministic lines). With spread it is the limit
/// that deep queues come near to. All zero without workers.
LoaderBounds loader_bounds(const LoaderPipeline& pipeline);

/// Time from the start of the workers to the first batch in the training process.
Seconds loader_fill(const LoaderPipeline& pipeline);

/// Bytes of one sample as a worker hands it over and as it is copied to the device.
Bytes delivered_sample(const DataLoader& loader);

/// Users of a loader: training processes and their machines.
struct LoaderUse {
  double batch = 1.0;  ///< samples of one batch
  int processes = 1;   ///< training processes of one machine, each with a loader
  int machines = 1;
  Seconds transfer;  ///< a batch's copy, if it leaves pinned memory
};

/// Costs a loader. Sources of the parts: disk_cost for storage; LoaderConstants for what the kernel and the hand-over
/// take. Reading a file costs `lookups` requests for its inode beside its data, or the server's round trips. Archives
/// are read on and on, or by page faults where they are mapped. What is in the page cache costs copies or faults only.
/// Cores with more workers than one lose a fiftieth of their time to switching between them.
LoaderPipeline loader_pipeline(const DataLoader& loader, const LoaderUse& use, const Node& node,
                               const Calibration& calibration);

}  // namespace foretrain
