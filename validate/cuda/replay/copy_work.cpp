// Copies between GPUs, and between them and the host.
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "validate/cuda/replay/work.hpp"

namespace foretrain::gpu {

namespace {

int device_of(const std::string& place) { return place.starts_with("gpu") ? std::stoi(place.substr(3)) : -1; }

class CopyDoer final : public Doer {
 public:
  CopyDoer(int gpus, const ReplayStreams& streams) : gpus_(gpus), streams_(streams) {}
  ~CopyDoer() override { CopyDoer::end_step(); }

  void see(const WorkItem& item) override {
    const auto& copy = std::get<CopyWork>(item.work);
    largest_ = std::max(largest_, to_size(copy.size));
    if (device_of(copy.from) >= 0 && device_of(copy.to) >= 0) return;
    std::size_t& host = copy.pinned ? largest_pinned_ : largest_pageable_;
    host = std::max(host, to_size(copy.size));
  }

  void make_ready() override {
    for (int device = 0; device < gpus_ && largest_ > 0; ++device) {
      const OnDevice here(device);
      buffers_.emplace(device, DeviceBuffer(2 * largest_));  // in and out do not disturb each other
      for (int peer = 0; peer < gpus_; ++peer) {
        int able = 0;
        if (peer != device) GPU_CHECK(cudaDeviceCanAccessPeer(&able, device, peer));
        if (able != 0 && cudaDeviceEnablePeerAccess(peer, 0) == cudaErrorPeerAccessAlreadyEnabled) {
          (void)cudaGetLastError();
        }
      }
    }
    if (largest_pinned_ > 0) pinned_ = std::make_unique<HostBuffer>(2 * largest_pinned_, true);
    if (largest_pageable_ > 0) pageable_ = std::make_unique<HostBuffer>(largest_pageable_, false);
  }

  void put(const WorkItem& item, int /*turn*/) override {
    const auto& work = std::get<CopyWork>(item.work);
    if (to_size(work.size) == 0) return;
    for (const ReplayStreams::Lane& lane : streams_.lanes(item.resource)) {
      const OnDevice here(lane.device);
      put_on(lane.stream->get(), work);
    }
  }

  void end_step() override {
    for (const auto& [data, bytes] : std::exchange(fresh_, {})) munmap(data, bytes);
  }

 private:
  [[nodiscard]] char* source(int device) const { return buffers_.at(device).as<char>(); }
  [[nodiscard]] char* target(int device) const { return source(device) + largest_; }

  void put_on(cudaStream_t stream, const CopyWork& work) {
    const std::size_t bytes = to_size(work.size);
    const int from = device_of(work.from), to = device_of(work.to);
    if (from < 0 && to < 0) throw GpuError(Fault::unsupported, "a copy within the host");
    if (from >= 0 && from == to) {
      GPU_CHECK(cudaMemcpyAsync(target(to), source(from), bytes, cudaMemcpyDeviceToDevice, stream));
    } else if (from >= 0 && to >= 0) {
      GPU_CHECK(cudaMemcpyPeerAsync(target(to), to, source(from), from, bytes, stream));
    } else if (from >= 0) {
      void* const host = work.pinned ? pinned_->data() : fresh(bytes);
      GPU_CHECK(cudaMemcpyAsync(host, source(from), bytes, cudaMemcpyDeviceToHost, stream));
    } else {
      const void* host = work.pinned ? static_cast<char*>(pinned_->data()) + largest_pinned_ : pageable_->data();
      GPU_CHECK(cudaMemcpyAsync(target(to), host, bytes, cudaMemcpyHostToDevice, stream));
    }
  }

  /// Fresh memory of the host, as a framework's .cpu() takes it.
  void* fresh(std::size_t bytes) {
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw GpuError(Fault::out_of_memory, "the host has no memory left for a copy");
    fresh_.emplace_back(data, bytes);
    return data;
  }

  int gpus_;
  const ReplayStreams& streams_;
  std::size_t largest_ = 0, largest_pinned_ = 0, largest_pageable_ = 0;
  std::map<int, DeviceBuffer> buffers_;  ///< by device: both ends of all copies
  std::unique_ptr<HostBuffer> pinned_, pageable_;
  std::vector<std::pair<void*, std::size_t>> fresh_;  ///< pageable memory of this step
};

}  // namespace

std::unique_ptr<Doer> make_copy_doer(const ReplayStreams& streams, int gpus) {
  return std::make_unique<CopyDoer>(gpus, streams);
}

}  // namespace foretrain::gpu
