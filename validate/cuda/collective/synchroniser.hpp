// Synchronisation of gradients for replays: the buckets of all workers become their sum, by NCCL or by the project's
// own parameter server, in the order of the workers' streams.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace foretrain::gpu {

/// One worker's gradients of a bucket, in the memory of its GPU.
struct WorkerBucket {
  float* data = nullptr;
  cudaStream_t stream = nullptr;  ///< of the worker's GPU; the same stream in every call
};

enum class SynchronisationMethod {
  nccl,        ///< ncclAllReduce, in place
  server_cpu,  ///< parameter server in page-locked host memory; host threads add
  server_gpu   ///< parameter server in the memory of one or more of the GPUs, which add
};

struct SynchroniserOptions {
  SynchronisationMethod method = SynchronisationMethod::nccl;
  std::vector<int> devices;        ///< the GPU of each worker, all different
  std::size_t largest_bucket = 0;  ///< elements; staging memory is made for these once
  int servers = 1;  ///< parameter server: key k lives on server k mod servers, on the workers' GPUs in turn
  int keys = 0;     ///< parameter server: a bucket is cut into this many; 0: one per server
  int threads = 0;  ///< server_cpu: threads that add; 0: as many as the host's processors warrant
};

/// All workers live in this process, one GPU each. Calls come from one thread.
class Synchroniser {
 public:
  virtual ~Synchroniser() = default;
  /// Puts the synchronisation of a bucket on the workers' streams and returns: what is put on a worker's stream
  /// afterwards finds the sum of all workers in its bucket. Can be captured into a CUDA graph when all streams have
  /// been forked from the capturing one. Throws GpuError; std::invalid_argument for another number of workers, or more
  /// elements than announced.
  virtual void synchronise(std::span<const WorkerBucket> workers, std::size_t elements) = 0;
  /// Waits until the workers' streams are idle, watching for errors and for a library that does not finish.
  virtual void wait(std::span<const WorkerBucket> workers);
  /// "nccl 2.28.9", "parameter server (cpu, 1 server, 4 keys, 8 threads)".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Throws GpuError (Fault::unsupported where this program was built without NCCL), std::invalid_argument for options
/// that contradict each other.
std::unique_ptr<Synchroniser> make_synchroniser(const SynchroniserOptions& options);

// The kinds, each in a file of its own.
std::unique_ptr<Synchroniser> make_nccl_synchroniser(const SynchroniserOptions& options);
std::unique_ptr<Synchroniser> make_server_synchroniser(const SynchroniserOptions& options);

}  // namespace foretrain::gpu
