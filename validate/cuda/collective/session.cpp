#include "validate/cuda/collective/session.hpp"

#ifdef FORETRAIN_HAS_NCCL

#include <algorithm>
#include <set>

#include "validate/cuda/core/timing.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

CollectiveSession::CollectiveSession(World& world)
    : world_(world), machines_(world.gather(machine_name())), device_(take_device()) {
  constexpr std::uint64_t most_elements = (1ULL << 32) / sizeof(float);
  const std::uint64_t room = std::min<std::uint64_t>(usable_memory() / 2 / sizeof(float), most_elements);
  // Whole pages, and the same everywhere: rank 0 decides what fits.
  capacity_ = std::ranges::min(world_.gather(room)) / 1024 * 1024;
  std::string error;
  try {
    send_ = DeviceBuffer(capacity_ * sizeof(float));
    receive_ = DeviceBuffer(capacity_ * sizeof(float));
    send_.fill(Format::fp32, stream_.get());
    stream_.synchronize();
  } catch (const GpuError& caught) {
    error = caught.what();
  }
  // An error of any process is one of all of them.
  for (const std::string& one : world_.gather(error.empty() ? error : error + " (" + machine_name() + ")")) {
    if (!one.empty()) throw GpuError(Fault::failed, one);
  }
}

/// As the n-th process of its machine GPU n, or the only one where the launcher shows each process its own.
int CollectiveSession::take_device() {
  const auto own = machines_.begin() + world_.rank;
  const auto before = static_cast<int>(std::count(machines_.begin(), own, *own));
  const int visible = visible_devices();
  if (visible > 1 && before >= visible) {
    throw WorldError("process " + std::to_string(before + 1) + " of this machine has no GPU of its own: " +
                     std::to_string(visible) + " are visible; start one process per GPU");
  }
  const int device = visible == 1 ? 0 : before;
  GPU_CHECK(cudaSetDevice(device));
  const std::vector<std::string> gpus = world_.gather(*own + " " + bus_id_of(device));
  if (std::set<std::string>(gpus.begin(), gpus.end()).size() == gpus.size()) return device;
  throw WorldError(
      "two processes drive the same GPU: start one process per GPU (a launcher that hides GPUs from processes must "
      "show each one its own)");
}

void CollectiveSession::connect(int ranks) {
  if (ranks == ranks_) return;
  communicator_.reset();
  ncclUniqueId id = {};
  if (world_.rank == 0) GPU_CHECK(ncclGetUniqueId(&id));
  id = world_.broadcast(id);
  if (world_.rank < ranks) communicator_ = std::make_unique<Communicators>(ranks, world_.rank, id);
  ranks_ = ranks;
}

void CollectiveSession::launch(const CollectivePoint& point) {
  const std::uint64_t step = (point.elements + 127) / 128 * 128;
  const std::uint64_t shift = turn_++ % std::max<std::uint64_t>(1, capacity_ / step) * step;
  const float* send = send_.as<float>() + shift;
  float* receive = receive_.as<float>() + shift;
  const std::size_t all = point.elements, block = point.block();
  const int rank = world_.rank, ranks = point.ranks;
  cudaStream_t stream = stream_.get();
  communicator_->group([&](std::size_t, ncclComm_t comm) {
    switch (point.operation) {
      case CollectiveOperation::all_reduce:
        return GPU_CHECK(ncclAllReduce(send, receive, all, ncclFloat, ncclSum, comm, stream));
      case CollectiveOperation::all_gather:
        return GPU_CHECK(ncclAllGather(send, receive, block, ncclFloat, comm, stream));
      case CollectiveOperation::reduce_scatter:
        return GPU_CHECK(ncclReduceScatter(send, receive, block, ncclFloat, ncclSum, comm, stream));
      case CollectiveOperation::broadcast:
        return GPU_CHECK(ncclBroadcast(send, receive, all, ncclFloat, 0, comm, stream));
      case CollectiveOperation::reduce:
        return GPU_CHECK(ncclReduce(send, receive, all, ncclFloat, ncclSum, 0, comm, stream));
      case CollectiveOperation::all_to_all:
        for (int peer = 0; peer < ranks; ++peer) {
          const std::size_t offset = static_cast<std::size_t>(peer) * block;
          GPU_CHECK(ncclSend(send + offset, block, ncclFloat, peer, comm, stream));
          GPU_CHECK(ncclRecv(receive + offset, block, ncclFloat, peer, comm, stream));
        }
        return;
      case CollectiveOperation::send_receive:
        GPU_CHECK(ncclSend(send, all, ncclFloat, (rank + 1) % ranks, comm, stream));
        GPU_CHECK(ncclRecv(receive, all, ncclFloat, (rank + ranks - 1) % ranks, comm, stream));
        return;
    }
  });
}

double CollectiveSession::carry_out(const Batch& batch) {
  connect(batch.point.ranks);
  double seconds = 0.0;
  if (communicator_) {
    const double begin = now();
    // Held until all of the batch is there, so that operations are not timed by their launches.
    keep_busy(Seconds(hold_s_), stream_.get());
    launch(batch.point);  // lets all ranks begin together
    start_.record(stream_.get());
    for (int i = 0; i < batch.count; ++i) launch(batch.point);
    hold_s_ = 1.5 * (now() - begin);
    end_.record(stream_.get());
    communicator_->wait({stream_.get()});
    seconds = elapsed(start_, end_);
  }
  return world_.maximum(seconds) / batch.count;
}

Sampled CollectiveSession::measure(const CollectivePoint& point, const StoppingRule& rule) {
  const auto timed = [&](int count) { return carry_out(world_.broadcast(Batch{point, count})); };
  try {
    timed(1);                                                 // NCCL connects ranks when they first need it
    const int count = batch_of(timed(1), Seconds(0.02), 20);  // the most that nccl-tests repeats
    return sample([&] { return timed(count); }, rule);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw GpuError(Fault::device_lost, error.what());
  }
}

void CollectiveSession::follow() {
  for (;;) {
    const Batch batch = world_.broadcast(Batch{});
    if (batch.count == 0) return;
    carry_out(batch);
  }
}

}  // namespace foretrain::gpu

#endif
