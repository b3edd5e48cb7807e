#include "validate/cuda/collective/synchroniser.hpp"

#include <set>
#include <stdexcept>

#include "validate/cuda/core/error.hpp"

namespace foretrain::gpu {

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

}  // namespace foretrain::gpu
