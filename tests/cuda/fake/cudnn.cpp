// libcudnn.so.9: every graph has one engine, which needs no workspace.
#include <cudnn.h>

#include <cstring>
#include <fstream>

#include "tests/cuda/fake/settings.hpp"
#include "tests/cuda/fake/world.hpp"

using fake::World;

namespace {

cudaStream_t current_stream = nullptr;
int thing = 0;

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "a cuDNN status"; }
void cudnnGetLastErrorString(char* text, std::size_t size) {
  if (size > 0) *text = '\0';
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(&thing);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  current_stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  const std::string log = fake::setting("plans");
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && !log.empty()) std::ofstream(log, std::ios::app) << "a plan\n";
  *made = reinterpret_cast<cudnnBackendDescriptor_t>(&thing);
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
  const bool notes = name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE || name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE;
  if (count != nullptr) *count = notes ? 0 : 1;
  if (wanted > 0 && values != nullptr && type == CUDNN_TYPE_INT64) std::memset(values, 0, sizeof(std::int64_t));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  const std::lock_guard<std::mutex> guard(World::get().mutex);
  return World::get().launch(current_stream, 50e-6) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                   : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
