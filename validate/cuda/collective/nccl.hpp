// NCCL: its statuses as GpuErrors, its communicators as objects. Only where it is built in.
#pragma once

#include <map>
#include <string>

#ifdef FORETRAIN_HAS_NCCL
#include <nccl.h>

#include <functional>
#include <vector>

#include "validate/cuda/core/device.hpp"
#endif

namespace foretrain::gpu {

inline constexpr const char* without_nccl =
    "this program was built without NCCL: install libnccl and its headers (NCCL_HOME), and build again";

/// "2.28.9"; empty without NCCL.
std::string nccl_version();

/// Parameters that a record of NCCL must have: its version, and its environment variables (NCCL_ALGO, NCCL_PROTO, …).
std::map<std::string, std::string> nccl_parameters();

#ifdef FORETRAIN_HAS_NCCL

/// GPU_CHECK's overload. ncclInProgress is no error.
void check(ncclResult_t status, const char* call, const char* file, int line);

/// The ranks of a communicator that this process drives, each on a GPU. Blocking communicators, since non-blocking ones
/// start a thread for every operation, which would be measured along. Where NCCL waits for ever for a process, a link
/// or a network interface, the parent of this process ends it (child_process.hpp).
class Communicators {
 public:
  /// All ranks, one on each of these GPUs. Throws GpuError.
  explicit Communicators(const std::vector<int>& devices);
  /// One of several processes', on the current GPU.
  Communicators(int ranks, int rank, const ncclUniqueId& id);
  /// On the way out of an error it stops whatever runs.
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Calls of NCCL that it carries out together, those of one member after those of the other.
  void group(const std::function<void(std::size_t member, ncclComm_t communicator)>& call);
  /// Sums of from[i] in to[i] (the same, or another buffer), on streams[i] of member i.
  void all_reduce(const std::vector<float*>& from, const std::vector<float*>& to, std::size_t elements,
                  const std::vector<cudaStream_t>& streams);
  /// Waits for these streams as nccl-tests does, asking NCCL for errors the while. Throws GpuError.
  void wait(const std::vector<cudaStream_t>& streams);

 private:
  std::vector<ncclComm_t> members_;
};

#endif

}  // namespace foretrain::gpu
