// libcudnn.so.9: every graph has one engine, which needs no workspace.
#include <cudnn_graph.h>

#include <cstring>
#include <fstream>

#include "tests/cuda/fake/libraries.hpp"

namespace {

cudaStream_t current_stream = nullptr;

}  // namespace

// Its header names types and attributes; the functions that it declares are defined as it has them.
extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "a cuDNN status"; }
void cudnnGetLastErrorString(char* text, std::size_t) { *text = '\0'; }
cudnnStatus_t cudnnCreate(cudnnHandle_t*) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  current_stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  static int thing = 0;
  const std::string log = fake::setting("plans");
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && !log.empty()) std::ofstream(log, std::ios::app) << "a plan\n";
  *made = &thing;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t, std::int64_t, const void*) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t wanted, std::int64_t* count,
                                       void* values) {
  *count = name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ? 0 : 1;
  if (wanted > 0 && type == CUDNN_TYPE_INT64) std::memset(values, 0, sizeof(std::int64_t));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  return static_cast<cudnnStatus_t>(fake::run(current_stream, 50e-6, CUDNN_STATUS_EXECUTION_FAILED));
}

}  // extern "C"
