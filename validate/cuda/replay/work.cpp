#include "validate/cuda/replay/work.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "validate/cuda/replay/least_memory.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

std::size_t to_size(Bytes size) { return static_cast<std::size_t>(size.value()); }

int device_of(const std::string& place) { return place.starts_with("gpu") ? std::stoi(place.substr(3)) : -1; }

std::size_t elements_of(const CollectiveWork& work) {
  return std::max<std::size_t>(1, to_size(work.size) / sizeof(float));
}

/// Operands come back after a few times the L2, so that a step's operators find theirs in memory, as they would.
std::size_t pool_limit() { return std::max(std::size_t{256} << 20, 4 * l2_bytes()); }

std::string sized(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

}  // namespace

/// Buckets of one stream and who synchronises them.
struct ReplayWork::Exchange {
  std::size_t elements = 0;
  std::vector<DeviceBuffer> buckets;
  std::vector<WorkerBucket> workers;
  std::unique_ptr<Synchroniser> synchroniser;
};

ReplayWork::ReplayWork(const replay::Graph& graph, const ReplayStreams& streams) : graph_(graph), streams_(streams) {
  std::size_t free = 0, total = 0;
  const OnDevice first(0);
  GPU_CHECK(cudaMemGetInfo(&free, &total));
  const std::size_t least = least_memory(graph);
  if (least > free) {
    throw GpuError(Fault::out_of_memory,
                   graph.name + " needs at least " + sized(least) + " of memory on a GPU; " + sized(free) + " of " +
                       sized(total) + " are free: export it with a smaller batch, or end what else uses the GPU");
  }
  std::size_t copies = 0, pinned = 0, pageable = 0;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const replay::Task& task = graph.tasks[t];
    const std::vector<Work>& pieces = block_of(static_cast<int>(t)).work;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (const auto* kernel = std::get_if<KernelWork>(&pieces[i])) {
        make_kernel(*kernel, task.block, i, task.resource);
      } else if (const auto* copy = std::get_if<CopyWork>(&pieces[i])) {
        copies = std::max(copies, to_size(copy->size));
        if (!copy->from.starts_with("gpu") || !copy->to.starts_with("gpu")) {
          std::size_t& host = copy->pinned ? pinned : pageable;
          host = std::max(host, to_size(copy->size));
        }
      } else if (const auto* collective = std::get_if<CollectiveWork>(&pieces[i])) {
        make_exchange(*collective, task.resource);
      }
    }
  }
  if (copies > 0) {
    for (int device = 0; device < graph.gpus; ++device) {
      const OnDevice here(device);
      copy_buffers_.emplace(device, DeviceBuffer(2 * copies));  // in and out do not disturb each other
      for (int peer = 0; peer < graph.gpus; ++peer) {
        int able = 0;
        if (peer != device) GPU_CHECK(cudaDeviceCanAccessPeer(&able, device, peer));
        if (able != 0 && cudaDeviceEnablePeerAccess(peer, 0) == cudaErrorPeerAccessAlreadyEnabled) {
          (void)cudaGetLastError();
        }
      }
    }
  }
  if (pinned > 0) pinned_ = std::make_unique<HostBuffer>(2 * pinned, true);
  if (pageable > 0) pageable_ = std::make_unique<HostBuffer>(pageable, false);
  for (auto& [key, exchange] : exchanges_) {
    SynchroniserOptions options;
    const std::string& method = std::get<0>(key);
    if (method == "server_cpu") options.method = SynchronisationMethod::server_cpu;
    if (method == "server_gpu") options.method = SynchronisationMethod::server_gpu;
    options.servers = std::get<1>(key);
    options.largest_bucket = exchange->elements;
    for (const ReplayStreams::Lane& lane : streams.lanes(std::get<2>(key))) {
      const OnDevice here(lane.device);
      options.devices.push_back(lane.device);
      exchange->buckets.emplace_back(exchange->elements * sizeof(float));
      exchange->buckets.back().fill(Format::fp32, lane.stream->get());
      lane.stream->synchronize();
      exchange->workers.push_back({exchange->buckets.back().as<float>(), lane.stream->get()});
    }
    exchange->synchroniser = make_synchroniser(options);
  }
}

ReplayWork::~ReplayWork() {
  try {
    end_step();
  } catch (const std::exception&) {  // the context is gone: so is the memory
  }
}

const replay::Block& ReplayWork::block_of(int task) const {
  return graph_.blocks[static_cast<std::size_t>(graph_.tasks[static_cast<std::size_t>(task)].block)];
}

/// A block that many tasks refer to has one runner: a hundred calls of a small model read the same weights.
void ReplayWork::make_kernel(const KernelWork& work, int block, std::size_t index, int resource) {
  for (const ReplayStreams::Lane& lane : streams_.lanes(resource)) {
    std::unique_ptr<OperatorRunner>& runner = runners_[{block, index, resource, lane.device}];
    if (runner) continue;
    const OnDevice here(lane.device);
    std::unique_ptr<OperandPool>& pool = pools_[{resource, lane.device}];
    if (!pool) pool = std::make_unique<OperandPool>(lane.stream->get(), pool_limit());
    const OperatorSpec spec{work.kind, work.fields};
    try {
      pool->begin_operator();
      runner = make_runner(spec, {*pool, 1});
      runner->launch(lane.stream->get(), 0);
      lane.stream->synchronize();
    } catch (const GpuError& error) {
      throw GpuError(error.fault(), work.name + " (" + name_of(spec) + "): " + error.what());
    } catch (const std::invalid_argument& error) {
      throw GpuError(Fault::unsupported, work.name + " (" + name_of(spec) + "): " + error.what());
    }
  }
}

void ReplayWork::make_exchange(const CollectiveWork& work, int resource) {
  std::unique_ptr<Exchange>& exchange = exchanges_[{work.method, work.servers, resource}];
  if (!exchange) exchange = std::make_unique<Exchange>();
  exchange->elements = std::max(exchange->elements, elements_of(work));
}

void ReplayWork::put(int task, std::size_t index, int turn) {
  const replay::Task& stated = graph_.tasks[static_cast<std::size_t>(task)];
  const Work& work = block_of(task).work[index];
  if (const auto* collective = std::get_if<CollectiveWork>(&work)) {
    put_collective(*collective, stated.resource);
    return;
  }
  for (const ReplayStreams::Lane& lane : streams_.lanes(stated.resource)) {
    const OnDevice here(lane.device);
    if (const auto* kernel = std::get_if<KernelWork>(&work)) {
      OperatorRunner& runner = *runners_.at({stated.block, index, stated.resource, lane.device});
      for (int i = 0; i < kernel->count; ++i) runner.launch(lane.stream->get(), turn);
    } else if (const auto* copy = std::get_if<CopyWork>(&work)) {
      put_copy(*copy, lane);
    }
  }
}

void ReplayWork::put_copy(const CopyWork& work, const ReplayStreams::Lane& lane) {
  const std::size_t bytes = to_size(work.size);
  if (bytes == 0) return;
  const int from = device_of(work.from), to = device_of(work.to);
  const cudaStream_t stream = lane.stream->get();
  const auto on_gpu = [&](int device) {
    const DeviceBuffer& buffer = copy_buffers_.at(device);
    return buffer.as<char>();
  };
  if (from >= 0 && to >= 0) {
    char* target = on_gpu(to) + copy_buffers_.at(to).size() / 2;
    if (from == to) {
      GPU_CHECK(cudaMemcpyAsync(target, on_gpu(from), bytes, cudaMemcpyDeviceToDevice, stream));
    } else {
      GPU_CHECK(cudaMemcpyPeerAsync(target, to, on_gpu(from), from, bytes, stream));
    }
    return;
  }
  if (from >= 0) {
    void* target = nullptr;
    if (work.pinned) {
      target = pinned_->data();
    } else {  // fresh memory, as a framework's .cpu() takes it
      target = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (target == MAP_FAILED) {
        throw GpuError(Fault::out_of_memory, "the host has no " + sized(bytes) + " of memory for a copy");
      }
      fresh_.emplace_back(target, bytes);
    }
    GPU_CHECK(cudaMemcpyAsync(target, on_gpu(from), bytes, cudaMemcpyDeviceToHost, stream));
    return;
  }
  if (to < 0) throw GpuError(Fault::unsupported, "a copy within the host");
  char* target = on_gpu(to) + copy_buffers_.at(to).size() / 2;
  const void* source = work.pinned ? pinned_->as<char>() + pinned_->size() / 2 : pageable_->as<char>();
  GPU_CHECK(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, stream));
}

void ReplayWork::put_collective(const CollectiveWork& work, int resource) {
  Exchange& exchange = *exchanges_.at({work.method, work.servers, resource});
  const OnDevice here(0);
  for (int i = 0; i < work.count; ++i) exchange.synchroniser->synchronise(exchange.workers, elements_of(work));
}

void ReplayWork::do_on_host(const HostWork& work) {
  switch (work.action) {
    case HostWork::Action::sleep:
    case HostWork::Action::format: {  // the text is a framework's: the host is busy for as long as it would be
      const double end = now() + work.duration.value();
      while (now() < end) {
      }
      break;
    }
    case HostWork::Action::page_lock: {
      void* data = nullptr;
      if (work.size == Bytes(0.0)) break;
      GPU_CHECK(cudaHostAlloc(&data, to_size(work.size), cudaHostAllocPortable));
      locked_.push_back(data);
      break;
    }
    case HostWork::Action::dispatch:     // the launches behind it are the real ones
    case HostWork::Action::launch:       // and so is their way to the device
    case HostWork::Action::wait:         // the event has been waited for
    case HostWork::Action::synchronize:  // the events of all that was launched, too
      break;
  }
}

void ReplayWork::end_step() {
  for (const auto& [data, bytes] : fresh_) munmap(data, bytes);
  fresh_.clear();
  for (void* data : std::exchange(locked_, {})) GPU_CHECK(cudaFreeHost(data));
}

void ReplayWork::wait() {
  for (const auto& [key, exchange] : exchanges_) exchange->synchroniser->wait(exchange->workers);
}

void ReplayWork::check_finite() const {
  for (const auto& [place, pool] : pools_) {
    const OnDevice here(place.second);
    pool->check_finite();
  }
}

std::vector<std::string> ReplayWork::synchronisers() const {
  std::vector<std::string> all;
  for (const auto& [key, exchange] : exchanges_) all.push_back(exchange->synchroniser->description());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace foretrain::gpu
