// libcublasLt.so: accepts every description, and products take the same time.
#include <cublasLt.h>

#include <cmath>
#include <cstring>
#include <set>

#include "tests/cuda/fake/world.hpp"

using fake::World;

namespace {

/// A handle of something that is never looked into.
template <typename Handle>
cublasStatus_t make(Handle* handle) {
  static int things = 0;
  *handle = reinterpret_cast<Handle>(&things);
  return CUBLAS_STATUS_SUCCESS;
}

/// Results of products: where one is an operand of another, that one is infinite.
std::set<const void*> results;

}  // namespace

extern "C" {

#define ACCEPTS(name, ...) \
  cublasStatus_t name(__VA_ARGS__) { return CUBLAS_STATUS_SUCCESS; }

std::size_t cublasLtGetVersion() { return 130001; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "a cuBLAS status"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* made) { return make(made); }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
  return make(made);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType, std::uint64_t, std::uint64_t,
                                          std::int64_t) {
  return make(made);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) { return make(made); }
ACCEPTS(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t)
ACCEPTS(cublasLtMatmulDescSetAttribute, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*, std::size_t)
ACCEPTS(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t)
ACCEPTS(cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*,
        std::size_t)
ACCEPTS(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)
ACCEPTS(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
        const void*, std::size_t)
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  std::memset(results, 0, sizeof(*results));
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t*, cublasLtMatmulAlgoConfigAttributes_t,
                                                    void* value, std::size_t size, std::size_t* written) {
  std::memset(value, 0, size);
  if (written != nullptr) *written = size;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void* a,
                              cublasLtMatrixLayout_t, const void* b, cublasLtMatrixLayout_t, const void*, const void*,
                              cublasLtMatrixLayout_t, void* result, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*,
                              void*, std::size_t, cudaStream_t stream) {
  const std::lock_guard<std::mutex> guard(World::get().mutex);
  const float first = results.contains(a) || results.contains(b) ? INFINITY : 1.0F;  // also in 16 bits
  std::memcpy(result, &first, sizeof(first));
  results.insert(result);
  return World::get().launch(stream, 30e-6) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
