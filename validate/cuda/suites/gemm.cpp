#include "validate/cuda/suites/operator_suite.hpp"

namespace foretrain::gpu {

void run_gemm(SuiteRun& run) { measure_operators(run, gemm_points()); }

}  // namespace foretrain::gpu
