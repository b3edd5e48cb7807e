// libcublasLt.so: accepts every description, and products take the same time.
#include <cmath>
#include <cstring>
#include <set>

#include "tests/cuda/fake/libraries.hpp"

namespace {

constexpr int execution_failed = 13;  // CUBLAS_STATUS_EXECUTION_FAILED
/// sizeof(cublasLtMatmulHeuristicResult_t): eight words of the algorithm, then workspace, status, waves and a reserve.
constexpr std::size_t result_size = 96;

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() { return 130001; }
const char* cublasLtGetStatusString(int) { return "a cuBLAS status"; }
MAKES(cublasLtCreate)
MAKES(cublasLtMatmulDescCreate)
MAKES(cublasLtMatrixLayoutCreate)
MAKES(cublasLtMatmulPreferenceCreate)
ACCEPTS(cublasLtMatmulDescDestroy)
ACCEPTS(cublasLtMatmulDescSetAttribute)
ACCEPTS(cublasLtMatrixLayoutDestroy)
ACCEPTS(cublasLtMatrixLayoutSetAttribute)
ACCEPTS(cublasLtMatmulPreferenceDestroy)
ACCEPTS(cublasLtMatmulPreferenceSetAttribute)
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, void* results, int* count) {
  std::memset(results, 0, result_size);
  *count = 1;
  return 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const void*, int, void* value, std::size_t size, std::size_t* written) {
  std::memset(value, 0, size);
  *written = size;
  return 0;
}
int cublasLtMatmul(void*, void*, const void*, const void* a, void*, const void* b, void*, const void*, const void*,
                   void*, void* result, void*, const void*, void*, std::size_t, cudaStream_t stream) {
  static std::set<const void*> results;  // where one is an operand of another product, that one is infinite
  const float first = results.contains(a) || results.contains(b) ? INFINITY : 1.0F;  // also in 16 bits
  std::memcpy(result, &first, sizeof(first));
  results.insert(result);
  return fake::run(stream, 30e-6, execution_failed);
}

}  // extern "C"
