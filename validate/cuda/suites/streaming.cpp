#include "validate/cuda/suites/operator_suite.hpp"

namespace foretrain::gpu {

void run_streaming(SuiteRun& run) { measure_operators(run, streaming_points()); }

}  // namespace foretrain::gpu
