// NCCL: its statuses as GpuErrors, its communicators as objects. Only where it is built in.
#pragma once

#include <map>
#include <string>

#ifdef FORETRAIN_HAS_NCCL
#include <nccl.h>

#include <functional>
#include <memory>
#include <vector>

#include "validate/cuda/collective/operations.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/cuda/core/device.hpp"
#endif

namespace foretrain::gpu {

/// "2.28.9"; empty without NCCL.
std::string nccl_version();

/// What a record of NCCL must carry: its version, and whatever the environment tells it (NCCL_ALGO, NCCL_PROTO, …).
std::map<std::string, std::string> nccl_parameters();

#ifdef FORETRAIN_HAS_NCCL

/// GPU_CHECK's overload. ncclInProgress is no error.
void check(ncclResult_t status, const char* call, const char* file, int line);

/// What this process drives of a communicator: a rank on a GPU, with its stream.
struct Member {
  int rank = 0;
  int device = 0;
  ncclComm_t communicator = nullptr;
  std::unique_ptr<Stream> stream;
};

/// A communicator of some GPUs: all in this process, or one in each of several. Blocking communicators, since
/// non-blocking ones start a thread for every operation, which would be measured along. Where NCCL waits for ever for a
/// process, a link or a network interface, the parent of this process ends it (suite_process.hpp, replay_command.cpp).
class Communicators {
 public:
  /// Of these GPUs of this process. Throws GpuError.
  explicit Communicators(const std::vector<int>& devices);
  /// Of the first `ranks` processes of a world, one GPU each; every process of the world takes part in the call, those
  /// of higher rank are no members.
  Communicators(World& world, int ranks, int device);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }

  /// Puts the operation on all members' streams: from send[i] into receive[i] (device memory of member i), fp32.
  void launch(CollectiveOperation operation, const Extent& extent, const std::vector<const float*>& send,
              const std::vector<float*>& receive);
  /// Sums in place, on streams of the caller's choice: data[i] and streams[i] of member i.
  void all_reduce(const std::vector<float*>& data, std::size_t elements, const std::vector<cudaStream_t>& streams);
  /// Waits for all members' streams as nccl-tests does, asking NCCL for errors the while. Throws GpuError.
  void wait();
  /// The same for other streams that this communicator works on.
  void wait(const std::vector<cudaStream_t>& streams);
  /// Stops whatever runs; nothing can be launched any more.
  void abort() noexcept;

 private:
  /// Calls of NCCL, one for each member, that it carries out together.
  void group(const std::function<void(std::size_t member)>& call);

  int ranks_ = 0;
  std::vector<Member> members_;
  bool aborted_ = false;
};

#endif

}  // namespace foretrain::gpu
