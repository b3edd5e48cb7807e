#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

std::vector<OperatorPoint> streaming_points() { return PointList().finish(); }

}  // namespace foretrain::gpu
