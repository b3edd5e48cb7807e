// A calibration from SYNTHETIC measurements (synthetic.hpp), fitted once.
#pragma once

#include <string>

#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/fit/synthetic.hpp"
#include "validate/fit/gpu_fit.hpp"

namespace foretrain::test {

inline Calibration chosen_truth() {
  Calibration truth = load_default_calibration();
  truth.streaming.bandwidth_efficiency = 0.78;
  truth.streaming.kernel_us = 2.2;
  truth.matmul.fixed_us = 3.4;
  truth.matmul.tile_latencies = 3.0;
  truth.convolution.tensor_efficiency = 0.7;
  return truth;
}

inline const GpuCalibration& fitted() {
  static const GpuCalibration result = [] {
    synthetic::Design design;
    design.suites = {"gemm", "streaming", "convolution"};
    design.outlier_every = 23;
    return fit_gpu(synthetic::measurements(chosen_truth(), design));
  }();
  return result;
}

inline const RobustConstant* find(const GpuCalibration& fit, const std::string& name) {
  for (const auto& [constant, source] : fit.fitted) {
    if (constant.name == name) return &constant;
  }
  return nullptr;
}

}  // namespace foretrain::test
