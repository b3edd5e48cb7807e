// What a block does, for executors that really do it: operators, copies, collectives and what the host does. Plain
// values of the standard library, shared by foretrain, which prices the work, and foretrain-gpu, which does it.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "model/base/quantity.hpp"

namespace foretrain {

/// An operator on the device, launched `count` times. `kind` and `fields` are those of `workload.operator`, or
/// `traffic` { read, written, flops }: a kernel of which the model knows the bytes alone.
struct KernelWork {
  std::string name, kind;
  std::map<std::string, std::string> fields;
  int count = 1;
  Seconds predicted = {};  ///< of one
  bool operator==(const KernelWork&) const = default;
};

/// Between memories of devices: "gpu0", "cpu", "cpu1".
struct CopyWork {
  std::string from, to;
  Bytes size = {};
  bool pinned = true;  ///< memory of a host is page-locked; pageable memory on a host is fresh, as frameworks have it
  bool operator==(const CopyWork&) const = default;
};

/// An all-reduce of all GPUs of a data-parallel group. `method`: nccl | server_cpu | server_gpu; empty for another
/// collective, which no executor does.
struct CollectiveWork {
  std::string method = "nccl";
  Bytes size = {};  ///< as nccl-tests counts it
  int ranks = 1;
  int servers = 1;
  int count = 1;  ///< one after the other, `size` each
  bool operator==(const CollectiveWork&) const = default;
};

/// On a host thread.
struct HostWork {
  enum class Action {
    dispatch,  ///< hands `kernels` of the tasks that follow it to the device, as one CUDA graph where `graph` says so
    launch,    ///< a launch is on its way: nothing to do for an executor that really launches
    sleep,     ///< for `duration`
    wait,      ///< until what it depends on is done
    synchronize,  ///< until everything that the thread has launched is done
    format,       ///< turns `size` bytes that have arrived into text, for `duration`
    page_lock     ///< allocates `size` bytes of page-locked memory
  };
  Action action = Action::wait;
  Seconds duration = {};  ///< of a dispatch the prediction
  Bytes size = {};
  int kernels = 0;
  bool graph = false;
  bool operator==(const HostWork&) const = default;
};

using Work = std::variant<KernelWork, CopyWork, CollectiveWork, HostWork>;

}  // namespace foretrain
