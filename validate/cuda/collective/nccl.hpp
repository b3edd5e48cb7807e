// NCCL: its statuses as GpuErrors, its communicators as objects that a watchdog can abort. Only where it is built in.
#pragma once

#include <map>
#include <string>

#ifdef FORETRAIN_HAS_NCCL
#include <nccl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "validate/cuda/collective/operations.hpp"
#include "validate/cuda/collective/peer_access.hpp"
#include "validate/cuda/collective/watchdog.hpp"
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
/// non-blocking ones start a thread for every operation, which would be measured along; hangs are the watchdog's.
class Communicators {
 public:
  /// Of these GPUs of this process. Throws GpuError; Fault::timeout when NCCL does not come back.
  explicit Communicators(const std::vector<int>& devices, Limit::Times limit = {});
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
  /// Waits for all members' streams as nccl-tests does, asking NCCL for errors the while. `what` names the work.
  /// Throws GpuError; Fault::timeout when NCCL takes too long.
  void wait(const std::string& what);
  /// The same for other streams that this communicator works on.
  void wait(const std::string& what, const std::vector<cudaStream_t>& streams);
  /// Stops whatever runs; nothing can be launched any more.
  void abort() noexcept;

 private:
  /// Calls of NCCL, one for each member, that it carries out together.
  void group(const std::string& what, const std::function<void(std::size_t member)>& call);
  /// Aborts what runs, and throws Fault::timeout.
  void throw_if_overdue();

  int ranks_ = 0;
  std::vector<Member> members_;
  std::atomic<bool> aborted_{false};
  Watchdog dog_;
};

#endif

}  // namespace foretrain::gpu
