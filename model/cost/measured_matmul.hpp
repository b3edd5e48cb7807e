// Measured GEMMs beside the model: exact where measured, the model where nothing near was.
#pragma once

#include "model/cost/calibration.hpp"
#include "model/hardware/gpu.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// Keeps the rows of `gpu`, in the order that they are looked up in, and notes how far the model is off each. To be
/// called once, before any product is priced.
void adopt_measured_matmuls(Calibration& calibration, const Gpu& gpu);

/// Lower bound of the time of any product of this size and precision on this GPU: its datasheet's peak, exceeded by 15
/// %. Boards leave the boost clock of their datasheets behind: H100's rates are those of 1830 MHz (989.4 TFLOP/s over
/// 132 multiprocessors of 4096 operations a clock) and it runs up to 1980, by 8 %; GeForce boards by an eighth.
Seconds least_possible_time(const MeasuredMatmul& row, const Gpu& gpu);

/// The factor on the model's time of a product. With d the distance of a measured shape in the logarithms of batch, m,
/// n and k, rows of the same precision within a factor e weigh w = ((1 - d) / d)², the model as much as a row half-way:
///   ln factor = Σ w · ln(measured / model) / (Σ w + 1)
/// Operands transposed differently are half a unit apart. At a row w is infinite and the factor that row's; at d = 1 it
/// has faded to the model's. Continuous in the sizes.
double measured_factor(const Matmul& work, Precision precision, const Calibration& calibration);

}  // namespace foretrain
