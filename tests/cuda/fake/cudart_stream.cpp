// libcudart.so: streams, events and graphs on the virtual clock.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tests/cuda/fake/world.hpp"

using fake::World;

namespace {

fake::Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<fake::Event*>(handle); }
/// A graph is known by its number, so that one which is gone is not asked.
int number_of(const void* graph) { return static_cast<int>(reinterpret_cast<std::intptr_t>(graph)); }
template <typename Handle>
Handle handle_of(int graph) {
  return reinterpret_cast<Handle>(static_cast<std::intptr_t>(graph));
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  FAKE_ENTER;
  auto* made = new fake::Stream{.device = world.device, .ready = world.host};
  world.streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  World& world = World::get();
  const std::lock_guard<std::mutex> guard(world.mutex);
  auto* found = reinterpret_cast<fake::Stream*>(stream);
  if (world.streams.erase(found) == 1) delete found;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAKE_ENTER;
  if (world.stream(stream).capture != 0) return world.fail(cudaErrorStreamCaptureUnsupported);
  world.wait_until(world.stream(stream).ready);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  FAKE_ENTER;
  // Repeated queries find it done at last, before too many others have had their turn on a busy machine.
  world.host += std::max(50e-6, 0.5 * (world.stream(stream).ready - world.host));
  return world.stream(stream).ready <= world.host ? cudaSuccess : world.fail(cudaErrorNotReady);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  FAKE_ENTER;
  fake::Stream& on = world.stream(stream);
  if (world.graphs.count(event_of(event).capture) != 0) {
    on.capture = event_of(event).capture;
  } else {
    on.ready = std::max(on.ready, event_of(event).time);
  }
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  FAKE_ENTER;
  *event = reinterpret_cast<cudaEvent_t>(new fake::Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<fake::Event*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FAKE_ENTER;
  fake::Stream& on = world.stream(stream);
  event_of(event) = {.time = std::max(on.ready, world.host), .capture = on.capture};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  FAKE_ENTER;
  world.wait_until(event_of(event).time);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  FAKE_ENTER;
  world.host += 20e-6;  // who asks again and again finds it done at last
  return event_of(event).time <= world.host ? cudaSuccess : world.fail(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  FAKE_ENTER;
  *milliseconds = static_cast<float>((event_of(end).time - event_of(start).time) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  FAKE_ENTER;
  world.stream(stream).capture = ++world.last_graph;
  world.graphs[world.last_graph] = {};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  FAKE_ENTER;
  const int number = world.stream(stream).capture;
  if (number == 0) return world.fail(cudaErrorIllegalState);
  world.stream(stream).capture = 0;
  for (fake::Stream* other : world.streams) {
    if (other->capture == number) other->capture = 0;
  }
  *graph = handle_of<cudaGraph_t>(number);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  FAKE_ENTER;
  const int number = ++world.last_graph;
  world.graphs[number] = world.graphs[number_of(graph)];
  *ready = handle_of<cudaGraphExec_t>(number);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  FAKE_ENTER;
  return world.launch(stream, 3e-6 + world.graphs[number_of(graph)].seconds);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  World::get().graphs.erase(number_of(graph));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  World::get().graphs.erase(number_of(graph));
  return cudaSuccess;
}

}  // extern "C"
