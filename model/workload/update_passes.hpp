// Memory traffic of an optimizer's update.
#pragma once

#include "model/workload/training.hpp"

namespace foretrain {

/// Tensors of the parameters' number that one update passes through memory, in fp32 and read plus written, and kernels:
/// fused, each input is read and each result written once. Tensor by tensor, every elementary operation is a kernel of
/// its own that reads and writes what it needs (PyTorch's for_each=False path, and for_each=True with as many bytes in
/// fewer launches: lerp 3, mul 2, addcmul 3, sqrt 2, div 2, add 2, addcdiv 4; AdamW decays with mul 2 before; momentum
/// mul 2, add 3, add 3). Kernels for 8-bit states are fused (bitsandbytes). LAMB writes the update, reads it and the
/// weights for their norms, and both again to apply it (NVIDIA Apex, csrc/multi_tensor_lamb.cu); LARS takes the norms
/// of weights and gradients first (torchlars). Muon writes what it orthogonalises in two bytes, reads it for its norm,
/// and reads the result (PyTorch, optim/_muon.py).
struct UpdatePasses {
  double fused_read, fused_written;
  double separate_read, separate_written;
  int separate_kernels;
  double flops;
  double norms_read = 0.0, norms_written = 0.0;  ///< of the fused ones, for what goes by layers
};

constexpr UpdatePasses update_passes(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return {2, 1, 2, 1, 1, 2};
    case Optimizer::momentum:
      return {3, 2, 5, 3, 3, 4};
    case Optimizer::adam:
      return {4, 3, 11, 7, 7, 11};
    case Optimizer::lamb:
      return {8, 4, 17, 10, 12, 16, 4, 1};
    case Optimizer::lars:
      return {5, 2, 10, 5, 7, 8, 2, 0};
    case Optimizer::muon:
      return {4, 2.5, 8.5, 5, 7, 8, 1, 0.5};
    case Optimizer::adamw_8bit:
    case Optimizer::paged_adamw_8bit:
      return {2.5, 1.5, 2.5, 1.5, 1, 12};
    case Optimizer::adamw:
    case Optimizer::paged_adamw_32bit:
      break;
  }
  return {4, 3, 12, 8, 8, 12};
}

}  // namespace foretrain
