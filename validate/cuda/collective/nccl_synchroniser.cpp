#include <stdexcept>

#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/collective/synchroniser.hpp"
#include "validate/cuda/core/error.hpp"

namespace foretrain::gpu {

#ifndef FORETRAIN_HAS_NCCL

std::unique_ptr<Synchroniser> make_nccl_synchroniser(const SynchroniserOptions& /*options*/) {
  throw GpuError(
      Fault::unsupported,
      "this program was built without NCCL: install libnccl and its headers (NCCL_HOME), and build again; or "
      "take the parameter server");
}

#else

namespace {

class NcclSynchroniser final : public Synchroniser {
 public:
  explicit NcclSynchroniser(const SynchroniserOptions& options)
      : largest_(options.largest_bucket), communicators_(options.devices) {}

  void synchronise(std::span<const WorkerBucket> workers, std::size_t elements) override {
    if (workers.size() != communicators_.members().size() || elements > largest_) {
      throw std::invalid_argument("another number of workers, or a larger bucket, than announced");
    }
    std::vector<float*> data;
    for (const WorkerBucket& worker : workers) data.push_back(worker.data);
    communicators_.all_reduce(data, elements, streams_of(workers));
  }

  void wait(std::span<const WorkerBucket> workers) override { communicators_.wait(streams_of(workers)); }

  [[nodiscard]] std::string description() const override { return "nccl " + nccl_version(); }

 private:
  static std::vector<cudaStream_t> streams_of(std::span<const WorkerBucket> workers) {
    std::vector<cudaStream_t> streams;
    for (const WorkerBucket& worker : workers) streams.push_back(worker.stream);
    return streams;
  }

  std::size_t largest_;
  Communicators communicators_;
};

}  // namespace

std::unique_ptr<Synchroniser> make_nccl_synchroniser(const SynchroniserOptions& options) {
  return std::make_unique<NcclSynchroniser>(options);
}

#endif

}  // namespace foretrain::gpu
