#include "model/cost/loader.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/number.hpp"
#include "model/cost/storage.hpp"

namespace foretrain {

namespace {

/// Inodes lie apart from data; directories are few and stay in memory.
constexpr double lookups_per_file = 1.0;

/// Time slices last 3 ms (Linux, kernel/sched/fair.c: 0.75 ms times 1 + log2 of eight cores); after each of them 1 MiB
/// of second-level cache is read again at 20 GB/s: assumption.
constexpr double switch_share = 0.02;
/// Pages around the one that is asked for come with it (Linux, mm/memory.c: fault_around_bytes).
constexpr Bytes mapped_by_a_fault(65536.0);

BytesPerSecond gigabytes(double value) { return BytesPerSecond(value * 1e9); }

struct SampleRead {
  Seconds wait, disk, cpu;
};

class SampleReader {
 public:
  SampleReader(const Dataset& dataset, const Storage& storage, const LoaderConstants& constants, double readers,
               double machines)
      : dataset_(dataset), storage_(storage), constants_(constants), readers_(readers) {
    storage_.clients = std::max(storage.clients, static_cast<int>(machines));
  }

  [[nodiscard]] SampleRead from_cache() const {
    SampleRead read;
    if (dataset_.layout == Dataset::Layout::files) {
      // Whether the file is still the same is asked of the server every time (close-to-open consistency).
      read.wait = storage_.round_trip * storage_.round_trips_per_open;
      read.cpu = Seconds(constants_.open_us * 1e-6);
    }
    if (dataset_.mapped) {
      read.cpu += Seconds(constants_.page_fault_us * 1e-6) * std::ceil(dataset_.sample / mapped_by_a_fault);
    } else {
      read.cpu += dataset_.sample / gigabytes(constants_.copy_gbps);
    }
    return read;
  }

  [[nodiscard]] SampleRead from_storage() const {
    SampleRead read = from_cache();
    const bool files = dataset_.layout == Dataset::Layout::files;
    const bool by_page = dataset_.mapped && dataset_.order == Dataset::Order::shuffled;
    if (files || by_page) {
      DiskPattern first;
      first.block = std::min(dataset_.sample, storage_.read_ahead);
      add(read, first);
      rest(read, dataset_.sample - first.block, by_page);
      if (files) lookups(read);
    } else {
      rest(read, dataset_.sample, false);
    }
    return read;
  }

 private:
  void add(SampleRead& read, DiskPattern pattern, double times = 1.0) const {
    pattern.queue_depth = readers_;
    const DiskCost cost = disk_cost(storage_, pattern);
    read.wait += cost.wait * times;
    read.disk += cost.service * times;
  }
  /// Adds the rest of a read: by read-ahead, or page fault by page fault.
  void rest(SampleRead& read, Bytes size, bool by_page) const {
    if (!(size > Bytes(0.0))) return;
    DiskPattern pattern;
    pattern.block = size;
    pattern.order = AccessOrder::sequential;
    if (by_page && storage_.kind != StorageKind::disk) {
      pattern.order = AccessOrder::random;
      pattern.block = std::min(size, storage_.read_ahead);
      return add(read, pattern, size / pattern.block);
    }
    // The arm goes from archive to archive; a file is read while the arm is there.
    if (dataset_.layout == Dataset::Layout::archives) pattern.streams = readers_;
    const DiskCost cost = disk_cost(storage_, pattern);
    read.wait += cost.wait;
    read.disk += cost.service;
  }
  void lookups(SampleRead& read) const {
    if (storage_.kind == StorageKind::network) return;  // the round trips of opening are in from_cache()
    add(read, DiskPattern{}, lookups_per_file);
  }

  const Dataset& dataset_;
  Storage storage_;
  const LoaderConstants& constants_;
  double readers_;
};

/// Work of one process's workers on one batch, except reading.
Seconds batch_stages(const DataLoader& loader, double batch) {
  const LoaderStages& s = loader.stages;
  const Seconds decode = loader.decodes_on_device ? Seconds(0.0) : s.decode;
  return (decode + s.preprocess + s.augment + s.collate) * (loader.per_batch ? 1.0 : batch);
}

bool has_parts(const DataLoader& loader) {
  const LoaderStages& s = loader.stages;
  return loader.dataset || loader.decoded > Bytes(0.0) ||
         s.read + s.decode + s.preprocess + s.augment + s.collate > Seconds(0.0);
}

Bytes memory_of_workers(const DataLoader& loader, const LoaderUse& use, const LoaderConstants& constants) {
  const Bytes batches = delivered_sample(loader) * (use.batch * loader.prefetch);
  return (1.0_MiB * constants.worker_mib + batches) * (number(loader.workers) * use.processes);
}

/// Samples that are in the page cache beside what the workers take, over all.
double hit_share_of(const DataLoader& loader, const Node& node, const LoaderConstants& constants, Bytes workers) {
  if (!loader.warm) return 0.0;
  const Bytes room = (node.cpu.memory - workers) * constants.cache_share;
  if (!loader.dataset->samples) return 0.0;
  const Bytes kept = loader.keeps_decoded ? loader.decoded : loader.dataset->sample;
  const bool shuffled = loader.dataset->order == Dataset::Order::shuffled;
  return page_cache_share(room, kept * *loader.dataset->samples, shuffled);
}

/// Adds what reading a batch takes, with the page cache in what the workers leave of the memory.
void add_reads(const DataLoader& loader, const LoaderUse& use, const Node& node, const LoaderConstants& constants,
               LoaderPipeline& pipeline) {
  const double readers = std::max(1, loader.workers) * number(use.processes);
  const Storage& storage = loader.storage ? *loader.storage : node.storage;
  const SampleReader reader(*loader.dataset, storage, constants, readers, use.machines);
  pipeline.hit_share = hit_share_of(loader, node, constants, pipeline.memory);
  const double hit = pipeline.hit_share * use.batch;
  const double miss = use.batch - hit;
  const SampleRead cached = reader.from_cache();
  const SampleRead stored = reader.from_storage();
  LoaderBatch& batch = pipeline.batch;
  if (loader.keeps_decoded) {
    // Cached samples are neither opened nor decoded; they are copied into the batch like the rest.
    const Seconds decode = loader.stages.decode * (loader.per_batch ? 1.0 / use.batch : 1.0);
    batch.cpu -= decode * (loader.decodes_on_device ? 0.0 : hit);
  } else {
    batch.wait += cached.wait * hit;
    batch.cpu += cached.cpu * hit;
  }
  batch.wait += stored.wait * miss;
  batch.disk += stored.disk * miss;
  batch.cpu += stored.cpu * miss;
}

}  // namespace

Bytes delivered_sample(const DataLoader& loader) {
  if (loader.decodes_on_device && loader.dataset) return loader.dataset->sample;
  return loader.decoded;
}

Seconds LoaderPipeline::serial() const {
  if (workers == 0) return batch.worker() + batch.pin + batch.transfer + batch.device;
  return batch.device + (overlapped ? Seconds(0.0) : batch.transfer);
}

Seconds LoaderBounds::longest() const { return std::max({workers, disk, cores, pinning, copies}); }

std::string_view LoaderBounds::bottleneck() const {
  const std::array<std::pair<std::string_view, Seconds>, 5> parts = {
      {{"workers", workers}, {"storage", disk}, {"cores", cores}, {"pinning", pinning}, {"copies", copies}}};
  return std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

LoaderBounds loader_bounds(const LoaderPipeline& pipeline) {
  if (pipeline.workers == 0) return {};
  const LoaderBatch& batch = pipeline.batch;
  // A place in the queue is free again once its batch has been taken, which is after it was pinned.
  const Seconds held = (batch.worker() + batch.pin) / (number(pipeline.workers) * pipeline.prefetch);
  return {std::max(batch.worker() / pipeline.workers, held), batch.disk * pipeline.sharers,
          batch.cpu / std::min(pipeline.workers, pipeline.cores), batch.pin,
          pipeline.overlapped ? batch.transfer : Seconds(0.0)};
}

Seconds loader_fill(const LoaderPipeline& pipeline) {
  return pipeline.workers == 0 ? Seconds(0.0) : pipeline.batch.worker() + pipeline.batch.pin;
}

LoaderPipeline loader_pipeline(const DataLoader& loader, const LoaderUse& use, const Node& node,
                               const Calibration& calibration) {
  const LoaderConstants& constants = calibration.loader;
  LoaderPipeline pipeline;
  pipeline.workers = loader.workers;
  pipeline.cores = loader.cores.value_or(std::max(1, node.cpu.cores / use.processes));
  pipeline.prefetch = loader.prefetch;
  pipeline.sharers = use.processes;
  pipeline.overlapped = loader.pinned && loader.non_blocking;
  pipeline.spread = loader.spread / std::sqrt(use.batch);
  pipeline.memory = memory_of_workers(loader, use, constants);

  const Bytes size = delivered_sample(loader) * use.batch;
  LoaderBatch& batch = pipeline.batch;
  batch.cpu = loader.per_sample * use.batch + batch_stages(loader, use.batch);
  batch.wait = loader.stages.read * (loader.per_batch ? 1.0 : use.batch);
  if (loader.dataset) add_reads(loader, use, node, constants, pipeline);
  if (loader.workers > 0 && has_parts(loader) && delivered_sample(loader) > Bytes(0.0)) {
    batch.cpu += Seconds(constants.hand_over_us * 1e-6) + size / gigabytes(constants.hand_over_gbps);
  }
  if (pipeline.workers > pipeline.cores) {
    // A core switches only while more than one worker waits for it.
    batch.cpu *= 1.0 + switch_share * (1.0 - number(pipeline.cores) / pipeline.workers);
  }
  if (loader.pinned) batch.pin = size / gigabytes(constants.hand_over_gbps);
  const Seconds pageable = size / gigabytes(calibration.host.pageable_copy_gbps);
  batch.transfer = loader.transfer.value_or(loader.pinned ? use.transfer : pageable);
  batch.device = loader.decodes_on_device ? loader.device_decode * (loader.per_batch ? 1.0 : use.batch) : Seconds(0.0);
  if (loader.dataset && loader.dataset->samples && loader.workers > 0 && !loader.persistent) {
    const double steps = std::max(1.0, *loader.dataset->samples / (use.batch * use.processes * number(use.machines)));
    pipeline.restart = (Seconds(constants.worker_start_ms * 1e-3) * loader.workers + loader_fill(pipeline)) / steps;
  }
  return pipeline;
}

}  // namespace foretrain
