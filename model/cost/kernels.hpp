// The cost model of each kind of operator, in kernels_NAME.cpp.
#pragma once

#include "model/cost/calibration.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/hardware/gpu.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

struct KernelTime {
  Seconds device;
  Bound bound = Bound::latency;
};

/// Time of any kind of operator in `kernels` launches.
#define FORETRAIN_KERNEL_TIME(Work) \
  kernel_time(const Work& work, Precision precision, int kernels, const Gpu& gpu, const Calibration& calibration)
KernelTime FORETRAIN_OPERATORS(FORETRAIN_KERNEL_TIME);
#undef FORETRAIN_KERNEL_TIME

/// A product in a linear layer of an inference engine, which has its own kernels (Gemm::of_engine).
Seconds engine_product_time(const Matmul& work, Precision precision, const Gpu& gpu, const Calibration& calibration);

/// Thread blocks into which any kind of operator is cut (device_share.hpp says how they are used).
#define FORETRAIN_THREAD_BLOCKS(Work) thread_blocks(const Work& work)
double FORETRAIN_OPERATORS(FORETRAIN_THREAD_BLOCKS);
#undef FORETRAIN_THREAD_BLOCKS

/// Blocks of `batch` products with m × n results each.
double product_blocks(double batch, double m, double n);

/// Integer units of a multiprocessor (CUDA C++ Programming Guide, throughput of native arithmetic instructions, compute
/// capability 7.0 to 9.0).
constexpr double integer_lanes = 64.0;

/// Bytes of a memory-bound kernel that one block moves, a few loads of 16 bytes for each of its threads: assumption.
constexpr Bytes bytes_of_a_block(32768.0);

/// Multiplications of the plain algorithm over the fewest of the algorithms that a convolution may choose
/// (Winograd's, Fourier transforms), tiles at the edges of an image counted whole; 1 where none has fewer.
double transform_saving(const Convolution& work, Precision precision);

/// Prices an operator on a device that is a processor (`gpu.processor` is there).
KernelTime processor_time(const Operator& op, const Gpu& gpu);

}  // namespace foretrain
