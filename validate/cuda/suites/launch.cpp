// What it costs to have a GPU do something. Parameter `what` names the quantity:
//   kernel_round_trip      host: launch an empty kernel and wait for it
//   kernel_back_to_back    stream: one empty kernel of many in a row
//   graph_call, graph_run  host, stream: launching, and running, a graph of `nodes` empty kernels in a chain
//   event_interval         stream: between two events with `kernels` (0 or 1) empty kernels in between
#include <string>

#include "validate/cuda/core/executable_graph.hpp"
#include "validate/cuda/core/idle.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/suites/points.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

void measure_kernels(SuiteRun& run) {
  run.point(plain_point("kernel_round_trip", {{"timing", "host"}}), [&] {
    const Stream stream;
    return time_host(
        [&] {
          launch_empty(stream.get());
          stream.synchronize();
        },
        run.rule());
  });
  run.point(plain_point("kernel_back_to_back", {{"timing", "stream"}, {"blocks", "1"}}), [&] {
    const Stream stream;
    return time_stream(
        stream, [&](cudaStream_t s, int) { launch_empty(s); }, run.rule());
  });
}

void measure_graphs(SuiteRun& run) {
  const auto chain = [](const Stream& stream, int nodes) {
    for (int i = 0; i < nodes; ++i) launch_empty(stream.get());
  };
  run.point(plain_point("graph_call", {{"timing", "host"}, {"nodes", "100"}}), [&] {
    const Stream stream;
    const ExecutableGraph graph(stream, [&] { chain(stream, 100); });
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
  run.point(plain_point("graph_run", {{"timing", "stream"}, {"nodes", "1000"}}), [&] {
    const Stream stream;
    const ExecutableGraph graph(stream, [&] { chain(stream, 1000); });
    return time_stream(
        stream, [&](cudaStream_t s, int) { graph.launch(s); }, run.rule());
  });
}

void measure_events(SuiteRun& run) {
  for (const int kernels : {0, 1}) {
    run.point(plain_point("event_interval", {{"timing", "stream"}, {"kernels", std::to_string(kernels)}}), [&] {
      const Stream stream;
      const Event start;
      const Event end;
      return sample(
          [&] {
            start.record(stream.get());
            if (kernels > 0) launch_empty(stream.get());
            end.record(stream.get());
            end.synchronize();
            return elapsed(start, end);
          },
          run.rule());
    });
  }
}

}  // namespace

void run_launch(SuiteRun& run) {
  measure_kernels(run);
  measure_graphs(run);
  measure_events(run);
}

}  // namespace foretrain::gpu
