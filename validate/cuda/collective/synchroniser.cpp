#include "validate/cuda/collective/synchroniser.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "validate/cuda/collective/pattern.hpp"
#include "validate/cuda/collective/pattern_fill.hpp"
#include "validate/cuda/collective/peer_access.hpp"
#include "validate/cuda/collective/synchronisers.hpp"
#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

namespace {

float value_at(GradientType type, const std::vector<char>& bytes, std::size_t index) {
  switch (type) {
    case GradientType::fp32:
      return reinterpret_cast<const float*>(bytes.data())[index];
    case GradientType::fp16:
      return __half2float(reinterpret_cast<const __half*>(bytes.data())[index]);
    case GradientType::bf16:
      return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(bytes.data())[index]);
  }
  return 0.0F;
}

}  // namespace

void Synchroniser::wait(std::span<const WorkerBucket> workers) {
  for (const WorkerBucket& worker : workers) GPU_CHECK(cudaStreamSynchronize(worker.stream));
}

std::unique_ptr<Synchroniser> make_synchroniser(const SynchroniserOptions& options) {
  const std::set<int> distinct(options.devices.begin(), options.devices.end());
  if (options.devices.empty() || distinct.size() != options.devices.size()) {
    throw std::invalid_argument("synchronisation needs a GPU of its own for each worker");
  }
  if (options.method == SynchronisationMethod::nccl) return make_nccl_synchroniser(options);
  return make_server_synchroniser(options);
}

void verify(Synchroniser& synchroniser, const SynchroniserOptions& options, std::size_t elements) {
  const std::size_t bytes = elements * bytes_of(options.type);
  std::vector<DeviceBuffer> buffers;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<WorkerBucket> workers;
  for (std::size_t w = 0; w < options.devices.size(); ++w) {
    const OnDevice on(options.devices[w]);
    buffers.emplace_back(bytes);
    streams.push_back(std::make_unique<Stream>());
    fill_coarse_contribution(options.type, buffers[w].data(), elements, static_cast<int>(w), streams[w]->get());
    workers.push_back({buffers[w].data(), streams[w]->get()});
  }
  synchroniser.synchronise(workers, elements);
  synchroniser.wait(workers);
  std::vector<char> found(bytes);
  for (std::size_t w = 0; w < workers.size(); ++w) {
    GPU_CHECK(cudaMemcpy(found.data(), buffers[w].data(), bytes, cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < elements; ++i) {
      float right = 0.0F;
      for (std::size_t v = 0; v < workers.size(); ++v) right += coarse_contribution(static_cast<int>(v), i);
      if (value_at(options.type, found, i) == right) continue;
      throw GpuError(Fault::failed, synchroniser.description() + ": wrong sum: element " + std::to_string(i) +
                                        " of worker " + std::to_string(w) + " is " +
                                        std::to_string(value_at(options.type, found, i)) + " instead of " +
                                        std::to_string(right));
    }
  }
}

}  // namespace foretrain::gpu
