// All-reduces, by NCCL or the project's own servers.
#include <algorithm>
#include <map>
#include <tuple>

#include "validate/cuda/collective/synchroniser.hpp"
#include "validate/cuda/replay/work.hpp"

namespace foretrain::gpu {

namespace {

std::size_t elements_of(const CollectiveWork& work) {
  return std::max<std::size_t>(1, to_size(work.size) / sizeof(float));
}

/// Buckets of one stream and who synchronises them.
struct Exchange {
  std::size_t elements = 0;
  std::vector<DeviceBuffer> buckets;
  std::vector<WorkerBucket> workers;
  std::unique_ptr<Synchroniser> synchroniser;
};

class CollectiveDoer final : public Doer {
 public:
  explicit CollectiveDoer(const ReplayStreams& streams) : streams_(streams) {}

  void see(const Piece& piece) override {
    const auto& work = std::get<CollectiveWork>(piece.work);
    std::size_t& elements = exchanges_[key_of(piece)].elements;
    elements = std::max(elements, elements_of(work));
  }

  void make_ready() override {
    for (auto& [key, exchange] : exchanges_) {
      SynchroniserOptions options;
      const std::string& method = std::get<0>(key);
      if (method == "server_cpu") options.method = SynchronisationMethod::server_cpu;
      if (method == "server_gpu") options.method = SynchronisationMethod::server_gpu;
      options.servers = std::get<1>(key);
      options.largest_bucket = exchange.elements;
      for (const ReplayStreams::Lane& lane : streams_.lanes(std::get<2>(key))) {
        const OnDevice here(lane.device);
        options.devices.push_back(lane.device);
        exchange.buckets.emplace_back(exchange.elements * sizeof(float));
        exchange.buckets.back().fill(Format::fp32, lane.stream->get());
        lane.stream->synchronize();
        exchange.workers.push_back({exchange.buckets.back().as<float>(), lane.stream->get()});
      }
      exchange.synchroniser = make_synchroniser(options);
    }
  }

  void put(const Piece& piece, int /*turn*/) override {
    const auto& work = std::get<CollectiveWork>(piece.work);
    Exchange& exchange = exchanges_.at(key_of(piece));
    const OnDevice here(0);
    for (int i = 0; i < work.count; ++i) exchange.synchroniser->synchronise(exchange.workers, elements_of(work));
  }

  void wait() override {
    for (const auto& [key, exchange] : exchanges_) exchange.synchroniser->wait(exchange.workers);
  }

  [[nodiscard]] std::vector<std::string> descriptions() const override {
    std::vector<std::string> all;
    for (const auto& [key, exchange] : exchanges_) all.push_back(exchange.synchroniser->description());
    return all;
  }

 private:
  using Key = std::tuple<std::string, int, int>;  ///< method, servers, resource
  static Key key_of(const Piece& piece) {
    const auto& work = std::get<CollectiveWork>(piece.work);
    return {work.method, work.servers, piece.resource};
  }

  const ReplayStreams& streams_;
  std::map<Key, Exchange> exchanges_;
};

}  // namespace

template <>
std::unique_ptr<Doer> make_doer<CollectiveWork>(const replay::Graph&, const ReplayStreams& streams) {
  return std::make_unique<CollectiveDoer>(streams);
}

}  // namespace foretrain::gpu
