#include "validate/cuda/collective/session.hpp"

#ifdef FORETRAIN_HAS_NCCL

#include <algorithm>
#include <cmath>
#include <set>

#include "validate/cuda/collective/ladder.hpp"
#include "validate/cuda/core/hold.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

constexpr double batch_s = 0.02;
constexpr std::uint64_t most_elements = (1ULL << 32) / sizeof(float);

}  // namespace

struct CollectiveSession::Buffers {
  DeviceBuffer send, receive;
  std::unique_ptr<Event> start, end;
};

/// What rank 0 tells the others. Plain bytes: all processes run the same program.
struct CollectiveSession::Command {
  bool finish = false;
  CollectivePoint point;
};

CollectiveSession::CollectiveSession(World& world, const std::vector<int>& devices)
    : world_(world), devices_(devices), hosts_(world.gather(machine_name())) {
  const std::vector<std::string> gpus = world_.gather(machine_name() + " " + bus_id_of(devices_.at(0)));
  if (std::set<std::string>(gpus.begin(), gpus.end()).size() != gpus.size()) {
    throw WorldError(
        "two processes drive the same GPU: start one process per GPU (a launcher that hides GPUs from "
        "processes must show each one its own)");
  }
  double room = static_cast<double>(most_elements);
  for (const int device : devices_) {
    const OnDevice on(device);
    const std::size_t elements = usable_memory() / 2 / sizeof(float);
    room = std::min(room, static_cast<double>(elements));
  }
  // Whole pages, and the same everywhere: rank 0 decides what fits.
  capacity_ = static_cast<std::uint64_t>(-world_.maximum(-room)) / 1024 * 1024;
  std::string error;
  try {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const OnDevice on(devices_[i]);
      auto begin = std::make_unique<Event>(), end = std::make_unique<Event>();
      buffers_.push_back({DeviceBuffer(capacity_ * sizeof(float)), DeviceBuffer(capacity_ * sizeof(float)),
                          std::move(begin), std::move(end)});
      const Stream stream;
      buffers_.back().send.fill(Format::fp32, stream.get());
      stream.synchronize();
    }
  } catch (const GpuError& caught) {
    error = caught.what();
  }
  agree(error);
}

CollectiveSession::~CollectiveSession() = default;

int CollectiveSession::ranks() const { return world_.size() > 1 ? world_.size() : static_cast<int>(devices_.size()); }

void CollectiveSession::agree(const std::string& error) {
  const std::vector<std::string> errors = world_.gather(error);
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank].empty()) continue;
    throw GpuError(Fault::failed, errors[rank] + " (rank " + std::to_string(rank) + " on " + hosts_[rank] + ")");
  }
}

void CollectiveSession::connect(int ranks) {
  if (communicators_ && communicators_->ranks() == ranks) return;
  communicators_.reset();
  if (world_.size() > 1) {
    communicators_ = std::make_unique<Communicators>(world_, ranks, devices_[0]);
  } else {
    communicators_ = std::make_unique<Communicators>(std::vector<int>(devices_.begin(), devices_.begin() + ranks));
  }
}

void CollectiveSession::launch(const CollectivePoint& point) {
  // Each operation takes the next stretch of the buffers, so that large caches do not keep what was just sent.
  const std::uint64_t step = (std::max(point.extent.sent, point.extent.received) + 127) / 128 * 128;
  const std::uint64_t places = std::max<std::uint64_t>(1, capacity_ / step);
  const std::uint64_t shift = turn_++ % places * step;
  if (communicators_->members().empty()) return;
  std::vector<const float*> send;
  std::vector<float*> receive;
  for (std::size_t i = 0; i < communicators_->members().size(); ++i) {
    send.push_back(buffers_[i].send.as<float>() + shift);
    receive.push_back(buffers_[i].receive.as<float>() + shift);
  }
  communicators_->launch(point.operation, point.extent, send, receive);
}

double CollectiveSession::batch(const CollectivePoint& point, int count) {
  const std::vector<Member>& members = communicators_->members();
  const double begin = now();
  // Held until all of the batch is there, so that operations are not timed by their launches.
  for (const Member& member : members) {
    const OnDevice on(member.device);
    keep_busy(Seconds(hold_s_), member.stream->get());
  }
  launch(point);  // lets all ranks begin together
  for (std::size_t i = 0; i < members.size(); ++i) buffers_[i].start->record(members[i].stream->get());
  for (int k = 0; k < count; ++k) launch(point);
  hold_s_ = 1.5 * (now() - begin);
  for (std::size_t i = 0; i < members.size(); ++i) buffers_[i].end->record(members[i].stream->get());
  communicators_->wait();
  double slowest = 0.0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    slowest = std::max(slowest, elapsed(*buffers_[i].start, *buffers_[i].end));
  }
  return world_.maximum(slowest) / count;
}

Sampled CollectiveSession::carry_out(const CollectivePoint& point, const StoppingRule& rule) {
  connect(point.ranks);
  launch(point);  // NCCL connects ranks when they first need it
  communicators_->wait();
  int count = batch_of(batch(point, 1), batch_s);
  if (world_.leads()) {
    Sampled sampled = sample(
        [&] {
          world_.broadcast(&count, sizeof(count));
          return batch(point, count);
        },
        rule);
    int stop = 0;
    world_.broadcast(&stop, sizeof(stop));
    return sampled;
  }
  while (true) {
    world_.broadcast(&count, sizeof(count));
    if (count == 0) return {};
    batch(point, count);
  }
}

Sampled CollectiveSession::measure(const CollectivePoint& point, const StoppingRule& rule) {
  Command command{.finish = false, .point = point};
  world_.broadcast(&command, sizeof(command));
  try {
    return carry_out(point, rule);
  } catch (const GpuError& error) {
    if (communicators_) communicators_->abort();
    communicators_.reset();       // the next point begins anew
    broken_ = world_.size() > 1;  // the other processes are somewhere else now
    // Another process instead of this one would find no others to measure with.
    if (broken_) throw GpuError(Fault::failed, error.what());
    throw;
  } catch (const WorldError& error) {
    broken_ = true;
    throw GpuError(Fault::failed, error.what());
  }
}

void CollectiveSession::finish() {
  Command command;
  command.finish = true;
  world_.broadcast(&command, sizeof(command));
}

void CollectiveSession::follow() {
  while (true) {
    Command command;
    world_.broadcast(&command, sizeof(command));
    if (command.finish) return;
    carry_out(command.point, StoppingRule{});
  }
}

}  // namespace foretrain::gpu

#endif
