// What it costs to have a GPU do something: launches, graphs, events, streams. Parameter `what` names the quantity:
//   kernel_round_trip      host: launch an empty kernel and wait for it
//   kernel_call            host: one launch of many, not waited for
//   kernel_back_to_back    stream: one empty kernel of many in a row; by blocks, by bytes of arguments
//   graph_instantiate, graph_call, graph_run   host, host, stream: a whole graph of `nodes` empty kernels in a chain
//   event_record, event_query, event_synchronize, stream_synchronize, stream_wait   host: one call, nothing to wait for
//   stream_hop             stream: an empty kernel that waits for one of another stream through an event
//   event_interval         stream: between two events with `kernels` (0 or 1) empty kernels in between
//   concurrent_kernels     host: `streams` kernels that wait 200 us each on streams of their own, until all are done
//   allocate_async         host: memory from the stream's pool and back
#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/kernels/idle.hpp"
#include "validate/cuda/suites/points.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

constexpr int calls =
    256;  ///< in one timing: their total is well above the clock's resolution, below the queue's length

/// Seconds per call of `calls` calls in a row on the host; the stream is drained before and after, outside the time.
Sampled time_calls(const Stream& stream, const std::function<void()>& call, const StoppingRule& rule) {
  return sample(
      [&] {
        stream.synchronize();
        const double start = now();
        for (int i = 0; i < calls; ++i) call();
        const double seconds = (now() - start) / calls;
        stream.synchronize();
        return seconds;
      },
      rule);
}

void measure_kernels(SuiteRun& run) {
  run.point(plain_point("kernel_round_trip", {{"timing", "host"}}), [&] {
    const Stream stream;
    return time_host(
        [&] {
          launch_empty(1, stream.get());
          stream.synchronize();
        },
        run.rule());
  });
  run.point(plain_point("kernel_call", {{"timing", "host"}}), [&] {
    const Stream stream;
    return time_calls(
        stream, [&] { launch_empty(1, stream.get()); }, run.rule());
  });
  for (const unsigned blocks : {1U, 128U, 1024U, 16384U, 131072U}) {
    run.point(plain_point("kernel_back_to_back", {{"timing", "stream"}, {"blocks", std::to_string(blocks)}}), [&] {
      const Stream stream;
      return time_stream(
          stream, [&](cudaStream_t s, int) { launch_empty(blocks, s); }, run.rule());
    });
  }
  for (const int bytes : {64, 1024, 4000}) {
    run.point(plain_point("kernel_back_to_back", {{"timing", "stream"}, {"argument_bytes", std::to_string(bytes)}}),
              [&] {
                const Stream stream;
                return time_stream(
                    stream, [&](cudaStream_t s, int) { launch_empty_with_arguments(bytes, s); }, run.rule());
              });
  }
}

/// A chain of empty kernels, recorded from a stream.
class ChainGraph {
 public:
  ChainGraph(const Stream& stream, int nodes) {
    GPU_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    try {
      for (int i = 0; i < nodes; ++i) launch_empty(1, stream.get());
    } catch (...) {
      cudaStreamEndCapture(stream.get(), &graph_);
      throw;
    }
    GPU_CHECK(cudaStreamEndCapture(stream.get(), &graph_));
  }
  ~ChainGraph() {
    if (ready_ != nullptr) cudaGraphExecDestroy(ready_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  ChainGraph(const ChainGraph&) = delete;
  ChainGraph& operator=(const ChainGraph&) = delete;

  void instantiate() {
    if (ready_ != nullptr) GPU_CHECK(cudaGraphExecDestroy(ready_));
    ready_ = nullptr;
    GPU_CHECK(cudaGraphInstantiate(&ready_, graph_, 0));
  }
  void launch(cudaStream_t stream) const { GPU_CHECK(cudaGraphLaunch(ready_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
};

void measure_graphs(SuiteRun& run) {
  for (const int nodes : {1, 10, 100, 1000}) {
    const std::string count = std::to_string(nodes);
    run.point(plain_point("graph_instantiate", {{"timing", "host"}, {"nodes", count}}), [&] {
      const Stream stream;
      ChainGraph graph(stream, nodes);
      return time_host([&] { graph.instantiate(); }, run.rule());
    });
    run.point(plain_point("graph_call", {{"timing", "host"}, {"nodes", count}}), [&] {
      const Stream stream;
      ChainGraph graph(stream, nodes);
      graph.instantiate();
      return sample(
          [&] {
            stream.synchronize();
            const double start = now();
            graph.launch(stream.get());
            const double seconds = now() - start;
            stream.synchronize();
            return seconds;
          },
          run.rule());
    });
    run.point(plain_point("graph_run", {{"timing", "stream"}, {"nodes", count}}), [&] {
      const Stream stream;
      ChainGraph graph(stream, nodes);
      graph.instantiate();
      return time_stream(
          stream, [&](cudaStream_t s, int) { graph.launch(s); }, run.rule());
    });
  }
}

void measure_events(SuiteRun& run) {
  struct Call {
    const char* what;
    std::function<void(const Stream&, const Event&)> make;
  };
  const Call table[] = {
      {"event_record", [](const Stream& stream, const Event& event) { event.record(stream.get()); }},
      {"event_query", [](const Stream&, const Event& event) { GPU_CHECK(cudaEventQuery(event.get())); }},
      {"event_synchronize", [](const Stream&, const Event& event) { event.synchronize(); }},
      {"stream_synchronize", [](const Stream& stream, const Event&) { stream.synchronize(); }},
      {"stream_wait",
       [](const Stream& stream, const Event& event) { GPU_CHECK(cudaStreamWaitEvent(stream.get(), event.get(), 0)); }}};
  for (const Call& call : table) {
    run.point(plain_point(call.what, {{"timing", "host"}}), [&] {
      const Stream stream;
      const Event event;
      event.record(stream.get());
      stream.synchronize();
      return time_calls(
          stream, [&] { call.make(stream, event); }, run.rule());
    });
  }
  run.point(plain_point("stream_hop", {{"timing", "stream"}}), [&] {
    const Stream first;
    const Stream second;
    const Event there(false);
    const Event back(false);
    const auto round = [&](cudaStream_t stream, int) {
      there.record(stream);
      GPU_CHECK(cudaStreamWaitEvent(second.get(), there.get(), 0));
      launch_empty(1, second.get());
      back.record(second.get());
      GPU_CHECK(cudaStreamWaitEvent(stream, back.get(), 0));
      launch_empty(1, stream);
    };
    Sampled rounds = time_stream(first, round, run.rule());
    for (double& seconds : rounds.values) seconds /= 2.0;  // there and back
    return rounds;
  });
  for (const int kernels : {0, 1}) {
    run.point(plain_point("event_interval", {{"timing", "stream"}, {"kernels", std::to_string(kernels)}}), [&] {
      const Stream stream;
      const Event start;
      const Event end;
      return sample(
          [&] {
            start.record(stream.get());
            if (kernels > 0) launch_empty(1, stream.get());
            end.record(stream.get());
            end.synchronize();
            return elapsed(start, end);
          },
          run.rule());
    });
  }
}

void measure_concurrency(SuiteRun& run) {
  constexpr double wait_s = 200e-6;
  int kilohertz = 0;
  GPU_CHECK(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, run.device()));
  const auto cycles = static_cast<std::int64_t>(wait_s * kilohertz * 1e3);
  for (const int count : {1, 2, 4, 8, 16, 32, 64, 128}) {
    run.point(plain_point("concurrent_kernels", {{"timing", "host"}, {"streams", std::to_string(count)}}), [&] {
      std::vector<std::unique_ptr<Stream>> streams;
      for (int i = 0; i < count; ++i) streams.push_back(std::make_unique<Stream>());
      return time_host(
          [&] {
            for (const auto& stream : streams) launch_spin(cycles, stream->get());
            for (const auto& stream : streams) stream->synchronize();
          },
          run.rule());
    });
  }
}

void measure_allocation(SuiteRun& run) {
  int pools = 0;
  GPU_CHECK(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, run.device()));
  const Record record = plain_point("allocate_async", {{"timing", "host"}, {"bytes", "1048576"}});
  if (pools == 0) return run.skip(record, "this GPU has no memory pools");
  run.point(record, [&] {
    const Stream stream;
    return time_calls(
        stream,
        [&] {
          void* memory = nullptr;
          GPU_CHECK(cudaMallocAsync(&memory, 1 << 20, stream.get()));
          GPU_CHECK(cudaFreeAsync(memory, stream.get()));
        },
        run.rule());
  });
}

}  // namespace

void run_launch(SuiteRun& run) {
  measure_kernels(run);
  measure_graphs(run);
  measure_events(run);
  measure_concurrency(run);
  measure_allocation(run);
}

}  // namespace foretrain::gpu
