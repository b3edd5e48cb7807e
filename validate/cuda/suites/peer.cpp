// Copies between every pair of GPUs, with and without peer access, each way and both at once.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "validate/cuda/collective/ladder.hpp"
#include "validate/cuda/collective/peer_access.hpp"
#include "validate/cuda/collective/peer_design.hpp"
#include "validate/cuda/core/suite.hpp"

namespace foretrain::gpu {

namespace {

/// One GPU's end of a link: its stream, what it sends and where it receives.
struct End {
  End(int on, std::size_t bytes) : device(on) {
    const OnDevice current(on);
    stream = std::make_unique<Stream>();
    done = std::make_unique<Event>(false);
    send = DeviceBuffer(bytes);
    receive = DeviceBuffer(bytes);
    send.fill(Format::int8, stream->get(), static_cast<std::uint64_t>(on) + 1);
    stream->synchronize();
  }
  int device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> done;
  DeviceBuffer send, receive;
};

/// In the stream of the GPU that sends. Copies go through the buffers, so that caches do not keep what was just sent.
void copy(const End& from, const End& to, std::uint64_t bytes, std::uint64_t turn) {
  const std::uint64_t step = (bytes + 511) / 512 * 512;
  const std::uint64_t shift = turn % std::max<std::uint64_t>(1, from.send.size() / step) * step;
  GPU_CHECK(cudaMemcpyPeerAsync(to.receive.as<char>() + shift, to.device, from.send.as<char>() + shift, from.device,
                                bytes, from.stream->get()));
}

Sampled time_copies(const End& a, const End& b, const PeerPoint& point, const StoppingRule& rule) {
  const OnDevice on(a.device);
  std::uint64_t turn = 0;
  const Event start;
  const Event end;
  const auto batch = [&](int count) {
    // Calls take longer than small copies.
    if (point.bytes <= 1 << 20) keep_busy(Seconds(10e-6 * count), a.stream->get());
    start.record(a.stream->get());
    if (point.both_ways) GPU_CHECK(cudaStreamWaitEvent(b.stream->get(), start.get(), 0));
    for (int i = 0; i < count; ++i, ++turn) {
      copy(a, b, point.bytes, turn);
      if (point.both_ways) copy(b, a, point.bytes, turn);
    }
    if (point.both_ways) {
      b.done->record(b.stream->get());
      GPU_CHECK(cudaStreamWaitEvent(a.stream->get(), b.done->get(), 0));
    }
    end.record(a.stream->get());
    end.synchronize();
    return elapsed(start, end) / count;
  };
  batch(1);
  const int count = batch_of(batch(1), 0.005, 256);
  return sample([&] { return batch(count); }, rule);
}

class Ends {
 public:
  const End& of(int device) {
    std::unique_ptr<End>& end = ends_[device];
    if (!end) {
      const OnDevice on(device);
      end = std::make_unique<End>(device, std::min<std::size_t>(usable_memory() / 2, 1ULL << 30));
    }
    return *end;
  }
  /// Keeps the memory of no more than two GPUs' buffers at a time.
  void keep_only(int first, int second) {
    std::erase_if(ends_, [&](const auto& end) { return end.first != first && end.first != second; });
  }

 private:
  std::map<int, std::unique_ptr<End>> ends_;
};

}  // namespace

void run_peer(SuiteRun& run) {
  const std::vector<PeerLink> links = peer_links();
  std::map<std::pair<int, int>, std::string> kinds;
  for (const PeerLink& link : links) kinds[{link.first, link.second}] = link.kind;
  Ends ends;
  for (const PeerPoint& point : peer_points(links, run.quick())) {
    Record record = record_of(point);
    record.parameters["link"] = kinds[std::minmax(point.source, point.destination)];
    const auto measure = [&] {
      ends.keep_only(point.source, point.destination);
      const End& a = ends.of(point.source);
      const End& b = ends.of(point.destination);
      if (point.bytes > std::min(a.send.size(), b.send.size())) {
        throw GpuError(Fault::out_of_memory, "the GPUs' free memory does not hold this copy twice");
      }
      std::unique_ptr<PeerAccess> access;
      if (point.access) access = std::make_unique<PeerAccess>(point.source, point.destination);
      return time_copies(a, b, point, run.rule());
    };
    if (!run.point(record, measure)) return;
  }
}

}  // namespace foretrain::gpu
