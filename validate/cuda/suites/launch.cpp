// Launch overheads of a GPU. Parameter `what` names the quantity:
//   kernel_round_trip      host: launch an empty kernel and wait for it
//   kernel_back_to_back    stream: one empty kernel of many in a row
//   graph_call, graph_run  host, stream: launching, and running, a graph of `nodes` empty kernels in a chain
//   event_interval         stream: between two events with `kernels` (0 or 1) empty kernels in between
#include <string>

#include "validate/cuda/core/executable_graph.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/core/timing.hpp"
#include "validate/cuda/suites/points.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

void launch_chain(const Stream& stream, int nodes) {
  for (int i = 0; i < nodes; ++i) launch_empty(stream.get());
}

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
    return time_stream(
        Stream(), [](cudaStream_t s, int) { launch_empty(s); }, run.rule());
  });
}

void measure_graphs(SuiteRun& run) {
  run.point(plain_point("graph_call", {{"timing", "host"}, {"nodes", "100"}}), [&] {
    const Stream stream;
    const ExecutableGraph graph(stream, [&] { launch_chain(stream, 100); });
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
    const ExecutableGraph graph(stream, [&] { launch_chain(stream, 1000); });
    return time_stream(
        stream, [&](cudaStream_t s, int) { graph.launch(s); }, run.rule());
  });
}

void measure_events(SuiteRun& run, int kernels) {
  run.point(plain_point("event_interval", {{"timing", "stream"}, {"kernels", std::to_string(kernels)}}), [&] {
    const Stream stream;
    const Event start, end;
    return sample(
        [&] {
          start.record(stream.get());
          launch_chain(stream, kernels);
          end.record(stream.get());
          end.synchronize();
          return elapsed(start, end);
        },
        run.rule());
  });
}

}  // namespace

void run_launch(SuiteRun& run) {
  measure_kernels(run);
  measure_graphs(run);
  for (const int kernels : {0, 1}) measure_events(run, kernels);
}

}  // namespace foretrain::gpu
