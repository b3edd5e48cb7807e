#include "validate/cuda/suites/operator_suite.hpp"

namespace foretrain::gpu {

void run_attention(SuiteRun& run) { measure_operators(run, attention_points()); }

}  // namespace foretrain::gpu
