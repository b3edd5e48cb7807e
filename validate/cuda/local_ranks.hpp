// One process a GPU of this machine, as training has it: who drives all GPUs from one thread launches their collectives
// one after the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/child_process.hpp"

namespace foretrain::gpu {

/// The processes of rank 1 and above of the suite collective. While it lives the environment tells a child that is
/// started next where to meet them, and that it is rank 0. A rank that loses the others ends by itself.
class LocalRanks {
 public:
  /// Throws std::system_error where they cannot be started. They measure into `folder`.
  LocalRanks(int gpus, const std::string& folder);
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

 private:
  std::string meeting_;  ///< a folder of their own
  std::vector<std::unique_ptr<ChildProcess>> others_;
};

}  // namespace foretrain::gpu
