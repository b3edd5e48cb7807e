// The kinds of Synchroniser, each in a file of its own.
#pragma once

#include "validate/cuda/collective/synchroniser.hpp"

namespace foretrain::gpu {

/// Throws GpuError with Fault::unsupported where NCCL is not built in.
std::unique_ptr<Synchroniser> make_nccl_synchroniser(const SynchroniserOptions& options);
/// server_cpu and server_gpu. Throws std::invalid_argument without a server or with a negative number of keys.
std::unique_ptr<Synchroniser> make_server_synchroniser(const SynchroniserOptions& options);

}  // namespace foretrain::gpu
