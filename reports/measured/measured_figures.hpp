// Pictures of a GPU's raw measurements. Panels without any point are left out; UsageError where nothing is left.
#pragma once

#include "reports/figure/figure.hpp"
#include "reports/measured/accuracy.hpp"
#include "reports/studies/roofline.hpp"
#include "validate/fit/gpu_fit.hpp"

namespace foretrain {

/// Matrix products: rate over the work of one product, a panel per precision beneath its peak, points by their shortest
/// side.
Figure gemm_figure(const RawMeasurements& raw, const std::vector<PredictedPoint>& points);

/// Bandwidth and latency: device memory and L2 by size, walks by working set, copies between host and device, copies
/// between GPUs.
Figure bandwidth_figure(const RawMeasurements& raw, const std::vector<PredictedPoint>& points);

/// Bus bandwidth of collectives by message (nccl-tests' convention): a panel per operation, a curve per number of GPUs.
Figure bus_bandwidth_figure(const RawMeasurements& raw, const std::vector<PredictedPoint>& points);

/// Measured operators beneath the roofs of their GPU: work and least traffic of the model, time as measured.
RooflineFigure measured_roofline(const std::vector<PredictedPoint>& points);

/// Every point beside its prediction, by group; held-out ones apart.
AccuracyReport measured_accuracy(const GpuCalibration& fit);

/// Share of points whose error is at most so large, a curve per family.
Figure error_distribution(const GpuCalibration& fit);

}  // namespace foretrain
