// The cost model of each kind of operator; operator_cost chooses among them.
#pragma once

#include "model/cost/calibration.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/hardware/gpu.hpp"

namespace foretrain {

struct KernelTime {
  Seconds device;
  Bound bound = Bound::latency;
};

KernelTime matmul_time(const Matmul& work, Precision precision, const Gpu& gpu, const Calibration& calibration);
KernelTime convolution_time(const Convolution& work, Precision precision, const Gpu& gpu,
                            const Calibration& calibration);
KernelTime attention_time(const Attention& work, Precision precision, const Gpu& gpu, const Calibration& calibration);
/// `kernels` launches share the traffic.
KernelTime streaming_time(const Streaming& work, int kernels, const Gpu& gpu, const Calibration& calibration);

/// Reads in a pattern, from the level of the hierarchy that holds the working set.
KernelTime memory_access_time(const MemoryAccess& work, const Gpu& gpu, const Calibration& calibration);

/// Multiplications of the plain algorithm over the fewest of the algorithms that convolution_time may choose
/// (Winograd's, Fourier transforms), tiles at the edges of an image counted whole; 1 where none has fewer.
double transform_saving(const Convolution& work, Precision precision);

}  // namespace foretrain
