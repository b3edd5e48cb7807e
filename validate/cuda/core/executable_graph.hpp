// Work of a stream, captured and instantiated as one CUDA graph.
#pragma once

#include <functional>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

class ExecutableGraph {
 public:
  ExecutableGraph(const Stream& stream, const std::function<void()>& put) {
    cudaGraph_t captured = nullptr;
    GPU_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    try {
      put();
    } catch (...) {
      cudaStreamEndCapture(stream.get(), &captured);
      throw;
    }
    GPU_CHECK(cudaStreamEndCapture(stream.get(), &captured));
    const cudaError_t status = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    GPU_CHECK(status);
  }
  ~ExecutableGraph() { cudaGraphExecDestroy(graph_); }
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;
  void launch(cudaStream_t stream) const { GPU_CHECK(cudaGraphLaunch(graph_, stream)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace foretrain::gpu
