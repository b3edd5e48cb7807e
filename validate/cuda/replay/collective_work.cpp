// All-reduces by NCCL.
#include <algorithm>
#include <map>

#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/replay/work.hpp"

namespace foretrain::gpu {

namespace {

#ifdef FORETRAIN_HAS_NCCL

std::size_t elements_of(const CollectiveWork& work) {
  return std::max<std::size_t>(1, to_size(work.size) / sizeof(float));
}

/// Buckets of one stream's GPUs, and who sums them.
struct Exchange {
  std::size_t elements = 0;
  std::vector<DeviceBuffer> buckets;
  std::vector<float*> data;
  std::vector<cudaStream_t> streams;
  std::unique_ptr<Communicators> communicators;
};

class CollectiveDoer final : public Doer {
 public:
  explicit CollectiveDoer(const ReplayStreams& streams) : streams_(streams) {}

  void see(const WorkItem& item) override {
    const auto& work = std::get<CollectiveWork>(item.work);
    if (work.method != "nccl") {
      throw GpuError(Fault::unsupported,
                     "a parameter server's sums are carried out between hosts (foretrain replay), not on GPUs");
    }
    std::size_t& elements = exchanges_[item.resource].elements;
    elements = std::max(elements, elements_of(work));
  }

  void make_ready() override {
    for (auto& [resource, exchange] : exchanges_) {
      std::vector<int> devices;
      for (const ReplayStreams::Lane& lane : streams_.lanes(resource)) {
        const OnDevice here(lane.device);
        devices.push_back(lane.device);
        exchange.buckets.emplace_back(exchange.elements * sizeof(float));
        exchange.buckets.back().fill(Format::fp32, lane.stream->get());
        lane.stream->synchronize();
        exchange.data.push_back(exchange.buckets.back().as<float>());
        exchange.streams.push_back(lane.stream->get());
      }
      exchange.communicators = std::make_unique<Communicators>(devices);
    }
  }

  void put(const WorkItem& item, int /*turn*/) override {
    const auto& work = std::get<CollectiveWork>(item.work);
    const Exchange& exchange = exchanges_.at(item.resource);
    const OnDevice here(0);
    for (int i = 0; i < work.count; ++i) {
      exchange.communicators->all_reduce(exchange.data, exchange.data, elements_of(work), exchange.streams);
    }
  }

  void wait() override {
    for (const auto& [resource, exchange] : exchanges_) exchange.communicators->wait(exchange.streams);
  }

  [[nodiscard]] std::string description() const override { return exchanges_.empty() ? "" : "nccl " + nccl_version(); }

 private:
  const ReplayStreams& streams_;
  std::map<int, Exchange> exchanges_;  ///< by resource
};

#else

class CollectiveDoer final : public Doer {
 public:
  explicit CollectiveDoer(const ReplayStreams& /*streams*/) {}
  void see(const WorkItem& /*item*/) override { throw GpuError(Fault::unsupported, without_nccl); }
};

#endif

}  // namespace

std::unique_ptr<Doer> make_collective_doer(const ReplayStreams& streams) {
  return std::make_unique<CollectiveDoer>(streams);
}

}  // namespace foretrain::gpu
