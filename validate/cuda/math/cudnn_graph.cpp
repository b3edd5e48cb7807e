#ifdef FORETRAIN_HAS_CUDNN
#include "validate/cuda/math/cudnn_graph.hpp"

#include <algorithm>
#include <array>

#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

/// Making plans may compile kernels; after so many seconds what was found must do.
constexpr double search_budget_s = 2.0;

bool not_supported(cudnnStatus_t status) { return status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000; }

Fault fault_of(cudnnStatus_t status) {
  if (not_supported(status)) return Fault::unsupported;
  if (status == CUDNN_STATUS_NOT_INITIALIZED || status == CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH ||
      status == CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED) {
    return Fault::unsupported;  // a library that is not whole: nothing of it can be measured, but other suites can
  }
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) return Fault::out_of_memory;
  return Fault::failed;
}

/// Attributes of which there may be none: how many, at most those that fit.
template <typename Value, std::size_t size>
std::int64_t read(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, std::array<Value, size>& values) {
  std::int64_t count = 0;
  GPU_CHECK(cudnnBackendGetAttribute(descriptor, name, type, static_cast<std::int64_t>(size), &count, values.data()));
  return std::min(count, static_cast<std::int64_t>(size));
}

struct Engine {
  std::int64_t number = -1;
  bool tensor_cores = false, narrower_inputs = false;
};

Engine engine_of(const CudnnDescriptor& configuration) {
  const CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t count = 0;
  GPU_CHECK(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                     &count, &raw));
  Engine result;
  std::array<std::int64_t, 1> number = {-1};
  if (read(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, number) > 0) result.number = number[0];
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes = {};
  const std::int64_t noted = read(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes);
  for (std::int64_t i = 0; i < noted; ++i) {
    const cudnnBackendNumericalNote_t note = notes[static_cast<std::size_t>(i)];
    result.tensor_cores |= note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    result.narrower_inputs |= note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  }
  return result;
}

}  // namespace

void check(cudnnStatus_t status, const char* call, const char* file, int line) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char why[512] = "";
  cudnnGetLastErrorString(why, sizeof(why));
  const std::string said = cudnnGetErrorString(status) + (why[0] != 0 ? std::string(": ") + why : "");
  throw GpuError(fault_of(status), failed_call(call, said, file, line));
}

cudnnHandle_t cudnn_on(cudaStream_t stream) {
  struct Handle {
    cudnnHandle_t handle = nullptr;
    cudaStream_t stream = nullptr;
  };
  static std::map<int, Handle> handles;  // one belongs to the device that is current when it is made (cudnnCreate)
  Handle& here = handles[current_device()];
  if (here.handle == nullptr) GPU_CHECK(cudnnCreate(&here.handle));
  if (stream != here.stream) {
    GPU_CHECK(cudnnSetStream(here.handle, stream));
    here.stream = stream;
  }
  return here.handle;
}

cudnnDataType_t cudnn_type(Format format) {
  if (format == Format::fp32) return CUDNN_DATA_FLOAT;
  if (format == Format::fp16) return CUDNN_DATA_HALF;
  if (format == Format::bf16) return CUDNN_DATA_BFLOAT16;
  throw GpuError(Fault::unsupported, "cuDNN is not asked for this precision here");
}

bool CudnnDescriptor::finish_if_supported() {
  // Engines refuse shapes with several statuses, also that of a bad parameter; only what breaks the GPU goes up.
  const cudnnStatus_t status = cudnnBackendFinalize(descriptor_);
  if (status / 1000 == CUDNN_STATUS_EXECUTION_FAILED / 1000) GPU_CHECK(status);
  return status == CUDNN_STATUS_SUCCESS;
}

std::int64_t CudnnGraph::tensor(const GraphTensor& tensor) {
  const auto identifier = static_cast<std::int64_t>(tensors_.size()) + 1;
  CudnnDescriptor& made = keep(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.sizes)
      .set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, identifier)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  if (tensor.is_virtual) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (tensor.by_value) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  made.finish();
  tensors_[identifier] = &made;
  return identifier;
}

CudnnDescriptor& CudnnGraph::operation(cudnnBackendDescriptorType_t type) {
  CudnnDescriptor& made = keep(type);
  operations_.push_back(made.get());
  return made;
}

std::vector<CudnnDescriptor> CudnnGraph::configurations(const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  CudnnDescriptor& heuristic = keep(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  std::vector<CudnnDescriptor> found;
  if (!heuristic.finish_if_supported()) return found;
  std::int64_t count = 0;
  GPU_CHECK(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                     &count, nullptr));
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    raw.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  }
  std::int64_t filled = 0;
  if (count > 0) {
    GPU_CHECK(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                       count, &filled, raw.data()));
  }
  found.erase(found.begin() + std::min(filled, count), found.end());
  return found;
}

std::vector<GraphPlan> CudnnGraph::plans(int most, std::int64_t workspace, const EngineFilter& filter) {
  CudnnDescriptor& graph = keep(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const cudnnHandle_t handle = cudnn_on(nullptr);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(operations_.size()),
            operations_.data());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.finish();
  std::vector<GraphPlan> plans;
  const double end = now() + search_budget_s;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (CudnnDescriptor& configuration : configurations(graph, mode)) {
      if (static_cast<int>(plans.size()) >= most || (!plans.empty() && now() > end)) return plans;
      const Engine engine = engine_of(configuration);
      if (filter.no_tensor_cores && engine.tensor_cores) continue;
      if (filter.no_narrower_inputs && engine.narrower_inputs) continue;
      CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
      if (!plan.finish_if_supported()) continue;
      std::array<std::int64_t, 1> needed = {0};
      read(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, needed);
      if (needed[0] > workspace) continue;
      kept_.push_back(std::move(configuration));
      plans.push_back({std::move(plan), needed[0], engine.number});
    }
    if (!plans.empty()) break;
  }
  if (plans.empty()) throw GpuError(Fault::unsupported, "cuDNN has no engine for this on this GPU");
  return plans;
}

CudnnDescriptor variant_pack(const std::map<std::int64_t, void*>& pointers, void* workspace) {
  std::vector<std::int64_t> identifiers;
  std::vector<void*> addresses;
  for (const auto& [identifier, address] : pointers) {
    identifiers.push_back(identifier);
    addresses.push_back(address);
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, identifiers)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(addresses.size()),
           addresses.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finish();
  return pack;
}

void run_plan(const GraphPlan& plan, const CudnnDescriptor& pack, cudaStream_t stream) {
  GPU_CHECK(cudnnBackendExecute(cudnn_on(stream), plan.plan.get(), pack.get()));
}

}  // namespace foretrain::gpu
#endif
