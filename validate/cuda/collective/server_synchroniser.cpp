// The project's parameter server within one process: workers push the keys of a bucket, servers add, workers pull. All
// in the order of streams: a worker pushes on one stream and pulls on another, so that both directions of its link are
// busy at once where there are several keys; each server adds on a stream that waits for every worker's push of the
// key.
#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "validate/cuda/collective/device_add.hpp"
#include "validate/cuda/collective/host_adder.hpp"
#include "validate/cuda/collective/keys.hpp"
#include "validate/cuda/collective/peer_access.hpp"
#include "validate/cuda/collective/synchroniser.hpp"
#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

namespace {

struct Lane {
  int device = 0;
  std::unique_ptr<Stream> push, pull;
  std::unique_ptr<Event> ready, done;
  std::vector<std::unique_ptr<Event>> pushed;  ///< per key
};

struct Server {
  int device = 0;
  std::unique_ptr<Stream> stream;
};

/// Staging memory of all keys: where workers push to, and where they pull from.
class Store {
 public:
  virtual ~Store() = default;
  /// Where worker w puts this key; null where the server reads the worker's own bucket.
  virtual float* slot(std::size_t worker, const Key& key) = 0;
  virtual float* sum(const Key& key) = 0;
  /// On the server's stream, whose GPU is current. The inputs stay where they are as long as the bucket's plan lives.
  virtual void add(float* sum, const std::vector<const float*>& inputs, std::uint64_t elements,
                   const Server& server) = 0;
};

/// Page-locked memory of the host; its processors add, in a function that the server's stream calls.
class HostStore final : public Store {
 public:
  explicit HostStore(const SynchroniserOptions& options)
      : adder_(options.threads), sum_(options.largest_bucket * sizeof(float), true) {
    for (std::size_t w = 0; w < options.devices.size(); ++w) {
      slots_.push_back(std::make_unique<HostBuffer>(options.largest_bucket * sizeof(float), true));
    }
  }
  float* slot(std::size_t worker, const Key& key) override { return slots_[worker]->as<float>() + key.first; }
  float* sum(const Key& key) override { return sum_.as<float>() + key.first; }
  void add(float* sum, const std::vector<const float*>& inputs, std::uint64_t elements, const Server& server) override {
    // The function may run much later, or again and again from a graph: what it is told must outlive this call.
    std::unique_ptr<Sum>& kept = sums_[{sum, elements}];
    if (!kept) kept = std::make_unique<Sum>(Sum{&adder_, sum, inputs, elements});
    GPU_CHECK(cudaLaunchHostFunc(server.stream->get(), run, kept.get()));
  }
  [[nodiscard]] int threads() const { return adder_.threads(); }

 private:
  struct Sum {
    HostAdder* adder;
    float* sum;
    std::vector<const float*> inputs;
    std::uint64_t elements;
  };
  static void CUDART_CB run(void* argument) {
    const Sum& job = *static_cast<const Sum*>(argument);
    job.adder->add(job.sum, job.inputs, job.elements);
  }

  HostAdder adder_;
  HostBuffer sum_;
  std::vector<std::unique_ptr<HostBuffer>> slots_;
  std::map<std::pair<float*, std::uint64_t>, std::unique_ptr<Sum>> sums_;
};

/// Memory of the servers' GPUs. A worker on a server's own GPU leaves its bucket where it is.
class DeviceStore final : public Store {
 public:
  DeviceStore(const SynchroniserOptions& options, const std::vector<Server>& servers) {
    for (const Key& key : cut_into_keys(options.largest_bucket, options.servers, options.keys)) {
      longest_ = std::max<std::uint64_t>(longest_, key.count + key_alignment);
      keys_per_server_ = std::max<std::size_t>(keys_per_server_, index_on_server(key, options) + 1);
    }
    servers_ = static_cast<std::uint64_t>(options.servers);
    for (const Server& server : servers) {
      const OnDevice on(server.device);
      const std::size_t bytes = longest_ * keys_per_server_ * sizeof(float);
      sums_.emplace_back(bytes);
      std::vector<DeviceBuffer>& slots = slots_.emplace_back();
      for (const int device : options.devices) {
        slots.push_back(device == server.device ? DeviceBuffer() : DeviceBuffer(bytes));
      }
    }
  }
  float* slot(std::size_t worker, const Key& key) override {
    const DeviceBuffer& buffer = slots_[static_cast<std::size_t>(key.server)][worker];
    return buffer.size() == 0 ? nullptr : buffer.as<float>() + offset(key);
  }
  float* sum(const Key& key) override { return sums_[static_cast<std::size_t>(key.server)].as<float>() + offset(key); }
  void add(float* sum, const std::vector<const float*>& inputs, std::uint64_t elements, const Server& server) override {
    add_on_device(sum, inputs, elements, server.stream->get());
  }

 private:
  static std::size_t index_on_server(const Key& key, const SynchroniserOptions& options) {
    return static_cast<std::size_t>(key.index) / static_cast<std::size_t>(options.servers);
  }
  /// Each key has a place of its own of the longest key's length.
  [[nodiscard]] std::uint64_t offset(const Key& key) const {
    return static_cast<std::uint64_t>(key.index) / servers_ * longest_;
  }

  std::uint64_t longest_ = key_alignment, servers_ = 1;
  std::size_t keys_per_server_ = 1;
  std::vector<DeviceBuffer> sums_;
  std::vector<std::vector<DeviceBuffer>> slots_;  ///< [server][worker]
};

class ServerSynchroniser final : public Synchroniser {
 public:
  explicit ServerSynchroniser(const SynchroniserOptions& options) : options_(options) {
    if (options.devices.size() > most_addends) throw std::invalid_argument("too many workers for one process");
    const bool on_gpu = options.method == SynchronisationMethod::server_gpu;
    cut_into_keys(options.largest_bucket, options.servers, options.keys);  // throws for what makes no sense
    for (int s = 0; s < options.servers; ++s) servers_.push_back(make_server(s));
    for (const int device : options.devices) lanes_.push_back(make_lane(device));
    if (on_gpu) {
      connect();
      store_ = std::make_unique<DeviceStore>(options, servers_);
    } else {
      auto host = std::make_unique<HostStore>(options);
      threads_ = host->threads();
      store_ = std::move(host);
    }
  }

  void synchronise(std::span<const WorkerBucket> workers, std::size_t elements) override {
    if (workers.size() != lanes_.size() || elements > options_.largest_bucket) {
      throw std::invalid_argument("another number of workers, or a larger bucket, than announced");
    }
    const std::vector<Key> keys = cut_into_keys(elements, options_.servers, options_.keys);
    for (std::size_t w = 0; w < lanes_.size(); ++w) push(w, workers[w], keys);
    for (std::size_t k = 0; k < keys.size(); ++k) add(k, keys[k], workers);
    for (std::size_t w = 0; w < lanes_.size(); ++w) pull(w, workers[w], keys);
  }

  [[nodiscard]] std::string description() const override {
    const bool on_gpu = options_.method == SynchronisationMethod::server_gpu;
    const int keys = options_.keys == 0 ? options_.servers : options_.keys;
    return std::string("parameter server (") + (on_gpu ? "gpu" : "cpu") + ", " + counted(options_.servers, "server") +
           ", " + counted(keys, "key") + (on_gpu ? "" : ", " + counted(threads_, "thread")) + ")";
  }

 private:
  static std::string counted(int count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  }

  [[nodiscard]] Server make_server(int index) const {
    Server server;
    server.device = options_.devices[static_cast<std::size_t>(index) % options_.devices.size()];
    const OnDevice on(server.device);
    server.stream = std::make_unique<Stream>();
    return server;
  }

  static Lane make_lane(int device) {
    const OnDevice on(device);
    Lane lane;
    lane.device = device;
    lane.push = std::make_unique<Stream>();
    lane.pull = std::make_unique<Stream>();
    lane.ready = std::make_unique<Event>(false);
    lane.done = std::make_unique<Event>(false);
    return lane;
  }

  /// Direct access between workers and servers where the GPUs can; elsewhere the driver copies through the host.
  void connect() {
    for (const PeerLink& link : peer_links()) {
      const auto is = [&](int worker, int server) {
        return std::count(options_.devices.begin(), options_.devices.end(), worker) > 0 &&
               std::any_of(servers_.begin(), servers_.end(), [&](const Server& s) { return s.device == server; });
      };
      if (link.access && (is(link.first, link.second) || is(link.second, link.first))) {
        access_.push_back(std::make_unique<PeerAccess>(link.first, link.second));
      }
    }
  }

  /// Events are made on first use and kept: a bucket cut into fewer keys uses the first of them.
  static const Event& event_of(std::vector<std::unique_ptr<Event>>& events, std::size_t key) {
    while (events.size() <= key) events.push_back(std::make_unique<Event>(false));
    return *events[key];
  }

  void push(std::size_t w, const WorkerBucket& worker, const std::vector<Key>& keys) {
    Lane& lane = lanes_[w];
    const OnDevice on(lane.device);
    lane.ready->record(worker.stream);
    GPU_CHECK(cudaStreamWaitEvent(lane.push->get(), lane.ready->get(), 0));
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (float* slot = store_->slot(w, keys[k])) copy(slot, part(worker, keys[k]), keys[k], *lane.push);
      event_of(lane.pushed, k).record(lane.push->get());
    }
  }

  void add(std::size_t k, const Key& key, std::span<const WorkerBucket> workers) {
    const Server& server = servers_[static_cast<std::size_t>(key.server)];
    const OnDevice on(server.device);
    std::vector<const float*> inputs;
    for (std::size_t w = 0; w < lanes_.size(); ++w) {
      GPU_CHECK(cudaStreamWaitEvent(server.stream->get(), lanes_[w].pushed[k]->get(), 0));
      const float* slot = store_->slot(w, key);
      inputs.push_back(slot != nullptr ? slot : part(workers[w], key));
    }
    store_->add(store_->sum(key), inputs, key.count, server);
    // An event belongs to the GPU of the stream that records it.
    std::vector<std::unique_ptr<Event>>& added = added_[key.server];
    event_of(added, static_cast<std::size_t>(key.index)).record(server.stream->get());
  }

  void pull(std::size_t w, const WorkerBucket& worker, const std::vector<Key>& keys) {
    const Lane& lane = lanes_[w];
    const OnDevice on(lane.device);
    for (const Key& key : keys) {
      const Event& added = *added_[key.server][static_cast<std::size_t>(key.index)];
      GPU_CHECK(cudaStreamWaitEvent(lane.pull->get(), added.get(), 0));
      copy(part(worker, key), store_->sum(key), key, *lane.pull);
    }
    lane.done->record(lane.pull->get());
    GPU_CHECK(cudaStreamWaitEvent(worker.stream, lane.done->get(), 0));
  }

  static float* part(const WorkerBucket& worker, const Key& key) { return worker.data + key.first; }

  static void copy(float* to, const float* from, const Key& key, const Stream& stream) {
    // Addresses are unique over all GPUs and the host: CUDA sees by itself which way this copy goes.
    GPU_CHECK(cudaMemcpyAsync(to, from, key.count * sizeof(float), cudaMemcpyDefault, stream.get()));
  }

  SynchroniserOptions options_;
  int threads_ = 0;
  std::vector<std::unique_ptr<PeerAccess>> access_;
  std::vector<Server> servers_;
  std::vector<Lane> lanes_;
  std::map<int, std::vector<std::unique_ptr<Event>>> added_;  ///< by server, per key
  std::unique_ptr<Store> store_;
};

}  // namespace

std::unique_ptr<Synchroniser> make_server_synchroniser(const SynchroniserOptions& options) {
  return std::make_unique<ServerSynchroniser>(options);
}

}  // namespace foretrain::gpu
