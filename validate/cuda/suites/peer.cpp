// Copies between every pair of GPUs, each way and both at once. The first pair of each kind of link copies 4 KiB to 1
// GiB; the others, which should be alike, only the largest copy. No scenario states them.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/suites/points.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::size_t largest = std::size_t{1} << 30;

/// One GPU's end of a link: its stream, what it sends and where it receives, all made while its GPU is current.
struct End {
  explicit End(int on) : device(on), send(room()), receive(send.size()) {
    send.fill(Format::int8, stream.get(), static_cast<std::uint64_t>(on) + 1);
    stream.synchronize();
  }
  static std::size_t room() { return std::min(usable_memory() / 2, largest); }
  int device;
  Stream stream;
  Event done = Event(false);
  DeviceBuffer send, receive;
};

std::unique_ptr<End> end_on(int device) {
  const OnDevice here(device);
  return std::make_unique<End>(device);
}

/// In the stream of the GPU that sends. Copies go through the buffers, so that caches do not keep what was just sent.
void copy(const End& from, const End& to, std::size_t bytes, int turn) {
  const std::size_t step = (bytes + 511) / 512 * 512;
  const std::size_t places = std::max<std::size_t>(1, from.send.size() / step);
  const std::size_t shift = static_cast<std::size_t>(turn) % places * step;
  GPU_CHECK(cudaMemcpyPeerAsync(to.receive.as<char>() + shift, to.device, from.send.as<char>() + shift, from.device,
                                bytes, from.stream.get()));
}

/// With both ways, until both copies of a turn are done.
Sampled time_copies(const End& a, const End& b, std::size_t bytes, bool both_ways, const StoppingRule& rule) {
  const OnDevice here(a.device);
  const auto launch = [&](cudaStream_t stream, int turn) {
    if (both_ways) {
      a.done.record(stream);
      GPU_CHECK(cudaStreamWaitEvent(b.stream.get(), a.done.get(), 0));
      copy(b, a, bytes, turn);
      b.done.record(b.stream.get());
    }
    copy(a, b, bytes, turn);
    if (both_ways) GPU_CHECK(cudaStreamWaitEvent(stream, b.done.get(), 0));
  };
  return time_stream(a.stream, launch, rule, Seconds(5e-3), both_ways ? 6 : 1);
}

/// Two GPUs and the kind of the link between them: whether each can reach the other's memory directly, and the link's
/// rank among all (NVLink is before PCIe).
struct PeerLink {
  int first, second;
  bool access;
  std::string kind;
};

/// With peer access switched on where it can be: elsewhere the driver copies through host memory.
PeerLink link_between(int first, int second) {
  int able = 0, rank = 0;
  bool access = true;
  for (const auto& [from, to] : {std::pair(first, second), {second, first}}) {
    const OnDevice here(from);
    GPU_CHECK(cudaDeviceCanAccessPeer(&able, from, to));
    if (able != 0) GPU_CHECK(cudaDeviceEnablePeerAccess(to, 0));
    access = access && able != 0;
  }
  if (!access) return {first, second, false, "no peer access"};
  GPU_CHECK(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, first, second));
  return {first, second, true, "peer access, rank " + std::to_string(rank)};
}

Record record_of(const PeerLink& link, bool back, bool both_ways, std::size_t bytes) {
  Record record = plain_point("peer_copy", {{"source", std::to_string(back ? link.second : link.first)},
                                            {"destination", std::to_string(back ? link.first : link.second)},
                                            {"direction", both_ways ? "both" : "one"},
                                            {"bytes", std::to_string(bytes)},
                                            {"peer_access", link.access ? "on" : "off"},
                                            {"timing", "stream"}});
  record.parameters["link"] = link.kind;
  return record;
}

/// False where the time is up.
bool measure(SuiteRun& run, const PeerLink& link, bool first_of_kind) {
  const std::unique_ptr<End> a = end_on(link.first), b = end_on(link.second);
  const std::size_t most = std::min(a->send.size(), b->send.size());
  for (std::size_t bytes = first_of_kind ? 4096 : largest; bytes <= most; bytes *= run.quick() ? 64 : 4) {
    for (const char* way : {"there", "back", "both"}) {
      const bool back = way == std::string("back"), both = way == std::string("both");
      if (both && !first_of_kind) continue;
      const Record record = record_of(link, back, both, bytes);
      const auto timed = [&] { return time_copies(back ? *b : *a, back ? *a : *b, bytes, both, run.rule()); };
      if (!run.point(record, timed)) return false;
    }
  }
  return true;
}

}  // namespace

void run_peer(SuiteRun& run) {
  std::set<std::string> known;
  std::vector<PeerLink> others;
  for (int first = 0; first < visible_devices(); ++first) {
    for (int second = first + 1; second < visible_devices(); ++second) {
      const PeerLink link = link_between(first, second);
      if (!known.insert(link.kind).second) {
        others.push_back(link);
      } else if (!measure(run, link, true)) {
        return;
      }
    }
  }
  for (const PeerLink& link : others) {
    if (run.quick() || !measure(run, link, false)) return;
  }
}

}  // namespace foretrain::gpu
