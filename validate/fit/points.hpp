// Raw measurements as scenarios: each record that states one is a case on the node that was measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "validate/fit/raw.hpp"
#include "validate/fit/robust_fit.hpp"

namespace foretrain {

/// A measured point that the model can predict.
struct PredictedPoint {
  const RawPoint* raw = nullptr;
  std::string kind;   ///< of the operator ("matmul", "softmax", …), or "collective", "tasks", "step"
  std::string group;  ///< kind and format: "matmul bf16"; of collectives the operation and ranks; of steps their mode
  bool held_out = false;
  std::optional<OperatorWorkload> op;  ///< of operators
  Seconds measured;                    ///< of one operator or collective
  std::string cache;                   ///< "warm": operands lie in the L2, "cold": none does; else as in a step
  Scenario scenario;
};

struct PredictedPoints {
  std::vector<PredictedPoint> points;
  std::vector<std::string> not_understood;  ///< "gemm.jsonl:12: …": records that are left out, and why
  std::vector<const RawPoint*> left_out;    ///< the same
};

/// The points whose scenario the ordinary readers accept on `node`, the text of a node file. Suites that measure one
/// thing while another runs beside it are left out: no operator alone. Of replayed steps kernels of less than 20 us
/// are.
PredictedPoints predicted_points(const RawMeasurements& raw, const std::string& node);

/// Seconds of the point under a calibration: of an operator its device time, in a replayed step as steps are priced, of
/// anything else the closed form.
Seconds predicted_time(const PredictedPoint& point, const Calibration& calibration);

/// For fits. The point must outlive it.
Observation observation_of(const PredictedPoint& point);

}  // namespace foretrain
