#include "validate/cuda/suites/operator_suite.hpp"

namespace foretrain::gpu {

void run_convolution(SuiteRun& run) { measure_operators(run, convolution_points()); }

}  // namespace foretrain::gpu
