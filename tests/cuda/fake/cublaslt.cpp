// libcublasLt.so: accepts every description, and products take the same time. Of a result only the first number is
// computed, as large as numbers of a product of random ones are: so that a chain of products grows as real ones do.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>

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

struct Layout {
  cudaDataType type;
  std::uint64_t rows, columns;
};

template <typename Number>
float read_as(const void* data) {
  Number number{};
  std::memcpy(&number, data, sizeof(number));
  return static_cast<float>(number);
}

/// The first number; memory that nothing was written to is taken for random numbers of [-1, 1].
float first_of(const void* data, cudaDataType type) {
  float first = 0.0F;
  if (type == CUDA_R_32F) first = read_as<float>(data);
  if (type == CUDA_R_16F) first = read_as<__half>(data);
  if (type == CUDA_R_16BF) first = read_as<__nv_bfloat16>(data);
  return first == 0.0F ? 0.577F : first;
}

template <typename Number>
void write_as(Number number, void* data) {
  std::memcpy(data, &number, sizeof(number));
}

void set_first(float value, void* data, cudaDataType type) {
  if (type == CUDA_R_32F) write_as(value, data);
  if (type == CUDA_R_16F) write_as(__float2half(value), data);
  if (type == CUDA_R_16BF) write_as(__float2bfloat16(value), data);
}

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() { return 130001; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "a cuBLAS status"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make(handle); }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new std::int32_t(CUBLAS_OP_N));  // whether its A is transposed
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  delete reinterpret_cast<std::int32_t*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t size) {
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) std::memcpy(made, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  delete reinterpret_cast<Layout*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*,
                                                std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) { return make(made); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
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
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void*, const void* a,
                              cublasLtMatrixLayout_t of_a, const void* b, cublasLtMatrixLayout_t of_b, const void*,
                              const void*, cublasLtMatrixLayout_t, void* result, cublasLtMatrixLayout_t of_result,
                              const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t stream) {
  const Layout& layout = *reinterpret_cast<Layout*>(of_a);
  const bool transposed = *reinterpret_cast<std::int32_t*>(product) != CUBLAS_OP_N;
  const auto terms = static_cast<float>(transposed ? layout.rows : layout.columns);
  const float first = std::sqrt(terms) * first_of(a, layout.type) * first_of(b, reinterpret_cast<Layout*>(of_b)->type);
  set_first(first, result, reinterpret_cast<Layout*>(of_result)->type);
  const std::lock_guard<std::mutex> guard(World::get().mutex);
  return World::get().launch(stream, 30e-6) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
