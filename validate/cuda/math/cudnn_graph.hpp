// cuDNN's graph interface as objects: tensors, operations between them, and plans that run them. Only where cuDNN was
// found (FORETRAIN_HAS_CUDNN).
#pragma once

#ifdef FORETRAIN_HAS_CUDNN
#include <cudnn_graph.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

/// Throws GpuError for a failed call; what cuDNN does not support is Fault::unsupported.
void check(cudnnStatus_t status, const char* call, const char* file, int line);

/// cuDNN's handle of the current device, one for the process, set to the stream.
cudnnHandle_t cudnn_on(cudaStream_t stream);

cudnnDataType_t cudnn_type(Format format);

/// One of cuDNN's descriptors: attributes are set, then it is finished.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    GPU_CHECK(cudnnBackendCreateDescriptor(type, &descriptor_));
  }
  ~CudnnDescriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                       const void* values) {
    GPU_CHECK(cudnnBackendSetAttribute(descriptor_, name, type, count, values));
    return *this;
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  template <typename Value>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Value value) {
    return set(name, type, 1, &value);
  }
  void finish() { GPU_CHECK(cudnnBackendFinalize(descriptor_)); }
  /// Like finish(), but false where cuDNN cannot do it; throws for other failures.
  bool finish_if_supported();
  [[nodiscard]] cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// A tensor of a graph. Virtual ones only join operations; those by value are host numbers given with each launch.
struct GraphTensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<std::int64_t> sizes, strides;
  bool is_virtual = false, by_value = false;
};

/// Which engines may not be taken for numbers' sake.
struct EngineFilter {
  bool no_tensor_cores = false;     ///< fp32 arithmetic, not tf32
  bool no_narrower_inputs = false;  ///< inputs are not converted to a shorter format
};

/// A finished plan of a whole graph.
struct GraphPlan {
  CudnnDescriptor plan;
  std::int64_t workspace = 0;
  std::int64_t engine = -1;  ///< cuDNN's number of it
};

class CudnnGraph {
 public:
  /// Identifier by which operations and launches name the tensor.
  std::int64_t tensor(const GraphTensor& tensor);
  [[nodiscard]] const CudnnDescriptor& descriptor(std::int64_t tensor) const { return *tensors_.at(tensor); }
  /// A descriptor that lives as long as the graph; the caller sets its attributes and finishes it.
  CudnnDescriptor& keep(cudnnBackendDescriptorType_t type) { return kept_.emplace_back(type); }
  /// The same for an operation, which becomes part of the graph.
  CudnnDescriptor& operation(cudnnBackendDescriptorType_t type);
  /// Closes the graph and asks the heuristics: up to `most` plans that this GPU can run within `workspace` bytes, in
  /// the heuristics' order (mode A, then fall-backs). Throws GpuError with Fault::unsupported when there is none.
  std::vector<GraphPlan> plans(int most, std::int64_t workspace, const EngineFilter& filter);

 private:
  std::vector<CudnnDescriptor> configurations(const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode);

  std::deque<CudnnDescriptor> kept_;  // a deque's elements stay where they are
  std::map<std::int64_t, CudnnDescriptor*> tensors_;
  std::vector<cudnnBackendDescriptor_t> operations_;
};

/// A graph, what names its tensors, and its plans.
template <typename Tensors>
struct PlannedGraph {
  CudnnGraph graph;
  Tensors tensors;
  std::vector<GraphPlan> plans;
};

/// The graph that `make` builds, once on each device for a name: cuDNN compiles a kernel for each plan, which
/// takes longer than measuring it, and the layers of a network are of one shape.
template <typename Tensors, typename Make>
std::shared_ptr<PlannedGraph<Tensors>> planned(const std::string& name, const Make& make) {
  // Never destroyed: at the end of the process the driver may be gone before.
  static auto& made = *new std::map<std::pair<int, std::string>, std::shared_ptr<PlannedGraph<Tensors>>>;
  std::shared_ptr<PlannedGraph<Tensors>>& plan = made[{current_device(), name}];
  if (plan) return plan;
  auto fresh = std::make_shared<PlannedGraph<Tensors>>();
  make(*fresh);
  return plan = std::move(fresh);
}

/// The pointers of one set of operands, in the form that a launch takes.
CudnnDescriptor variant_pack(const std::map<std::int64_t, void*>& pointers, void* workspace);

/// Puts a plan on the stream. Throws GpuError.
void run_plan(const GraphPlan& plan, const CudnnDescriptor& pack, cudaStream_t stream);

}  // namespace foretrain::gpu
#endif
