#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

std::vector<OperatorPoint> attention_points() { return PointList().finish(); }

}  // namespace foretrain::gpu
