// Traces of a few events, summed up by hand.
#include <fmt/ranges.h>

#include "model/base/words.hpp"
#include "reports/import/kineto_trace.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// In microseconds.
std::string event(const std::string& category, const std::string& name, double start, double duration,
                  const std::string& thread = "1", int device = 0) {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","ts":{},"dur":{},"tid":{},"args":{{"stream":7,"device":{}}}}})", category,
      name, start, duration, thread, device);
}

std::string summary_of(const std::vector<std::string>& events) {
  const KinetoSummary sum = summarise_kineto(fmt::format("[{}]", fmt::join(events, ",")), "f");
  const auto microseconds = [](Seconds time) { return fmt::format("{:.6g}", time.value() * 1e6); };
  std::string words =
      fmt::format("{} step{}{}, devices: {}{}: {}; alone {}, idle {}", sum.steps, sum.steps == 1 ? "" : "s",
                  sum.steps_marked ? " marked" : "", sum.devices, sum.on_device ? "" : " none", microseconds(sum.step),
                  microseconds(sum.exposed_communication), microseconds(sum.idle));
  for (const auto& [kind, kernel] : sum.kernels)
    words += fmt::format("\n{} {} x {}", name(kind), microseconds(kernel.time), kernel.count);
  return words;
}

}  // namespace

TEST_CASE("kernels of the first device are summed between the first one's start and the last one's end") {
  CHECK(summary_of({event("kernel", "gemm", 100, 50), event("Kernel", "ncclAllReduce", 120, 80),
                    event("gpu_memcpy", "x", 250, 10), event("kernel", "relu", 40, 30),
                    event("kernel", "gemm", 0, 1000, "1", 1), event("cpu_op", "aten::mm", 0, 5000),
                    event("kernel", "gemm", 260, 0)}) == R"(1 step, devices: 2: 220; alone 50, idle 80
matmul 50 x 2
elementwise 30 x 1
all_reduce 80 x 1
copy 10 x 1)");
}

TEST_CASE("marked steps are the window, and all numbers are of one of them") {
  CHECK(summary_of({event("user_annotation", "ProfilerStep#4", 100, 100), event("cpu_op", "ProfilerStep#5", 220, 80),
                    event("gpu_user_annotation", "ProfilerStep#5", 0, 9000), event("kernel", "gemm", 99, 10),
                    event("kernel", "gemm", 100, 20), event("kernel", "softmax", 300, 40),
                    event("kernel", "gemm", 301, 10), event("kernel", "ncclSend", 290, 40),
                    event("kernel", "gemm", 110, 20)}) == R"(2 steps marked, devices: 1: 100; alone 5, idle 80
matmul 20 x 1
reduction 20 x 0.5
p2p 20 x 0.5)");
}

TEST_CASE("operators of a processor count without those that they call, of their own thread") {
  CHECK(summary_of({event("cpu_op", "aten::linear", 0, 100), event("cpu_op", "aten::addmm", 10, 60),
                    event("cpu_op", "aten::copy_", 20, 10), event("cpu_op", "aten::relu", 100, 30),
                    event("cpu_op", "aten::mm", 5, 40, "2"), event("python_function", "train", 0, 900),
                    event("cpu_op", "Optimizer.step#Adam.step", 130, 50), event("cpu_op", "aten::mul", 140, 20)}) ==
        R"(1 step, devices: 1 none: 180; alone 0, idle 0
matmul 130 x 3
elementwise 30 x 1
optimizer 50 x 2
copy 10 x 1)");
}

TEST_CASE("a GPU that rests waits for the host's launch, for its loader, or for what its next kernel depends on") {
  const auto launch = [](double start, double end, int correlation) {
    return fmt::format(R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":{},"dur":{},"args":)"
                       R"({{"correlation":{}}}}})",
                       start, end - start, correlation);
  };
  const auto kernel = [](double start, double end, int correlation) {
    return fmt::format(R"({{"ph":"X","cat":"kernel","name":"gemm","ts":{},"dur":{},"args":{{"correlation":{}}}}})",
                       start, end - start, correlation);
  };
  // The host: 5 before the first kernel, 10 before the second, whose launch ends at 28, and 5 of the 20 from 40 to 60,
  // of which the loader has 15. The last kernel was launched at 62: it depends on something from 70 to 77.
  const KinetoSummary sum = summarise_kineto(
      fmt::format("[{}]", fmt::join({event("user_annotation", "ProfilerStep#1", 0, 100), launch(1, 3, 1),
                                     kernel(5, 20, 1), launch(25, 28, 2), kernel(30, 40, 2),
                                     event("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 42, 15),
                                     launch(58, 59, 3), kernel(60, 70, 3), launch(60, 62, 4), kernel(77, 100, 4)},
                                    ",")),
      "f");
  CHECK(sum.idle_by.host.value() * 1e6 == Approx(5.0 + 10.0 + 5.0));
  CHECK(sum.idle_by.loader.value() * 1e6 == Approx(15.0));
  CHECK(sum.idle_by.dependency.value() * 1e6 == Approx(7.0));
}

TEST_CASE("what is no complete event says nothing") {
  const std::string one = event("kernel", "gemm", 10, 5);
  const std::string same = summary_of({one});
  for (const char* other :
       {R"({"ph":"i","cat":"kernel","name":"gemm","ts":0,"dur":500})",
        R"({"ph":"X","cat":"kernel","name":"gemm","ts":0})",
        R"({"ph":"X","cat":"kernel","name":"gemm","ts":1e18,"dur":5})",
        R"({"ph":"X","cat":"kernel","name":"gemm","ts":0,"dur":1e15})", R"({"ph":"X","cat":"kernel","ts":0,"dur":-1})",
        "[1, null, true, \"ts\"]", "7", R"({"args":{"ph":"X","cat":"kernel","name":"gemm","ts":0,"dur":50}})"}) {
    INFO(other);
    CHECK(summary_of({other, one}) == same);
    CHECK(summary_of({one, other}) == same);
  }
  // Devices are numbers of arguments; of what else is called so, and of others, nothing is taken.
  CHECK(summary_of({event("kernel", "gemm", 10, 5, "1", 3), event("kernel", "gemm", 90, 5, "1", -1)}) ==
        R"(1 step, devices: 2: 5; alone 0, idle 0
matmul 5 x 1)");
  CHECK(summary_of({R"({"ph":"X","cat":"kernel","name":"gemm","ts":10,"dur":5,"device":4,)"
                    R"("args":{"deep":{"device":3},"device":2,"deeper":{"device":3}}})",
                    event("kernel", "gemm", 0, 7, "1", 2)}) == R"(1 step, devices: 1: 15; alone 0, idle 3
matmul 12 x 2)");
  const std::string wrapped = R"({"other":[)" + one + R"(],"traceEvents":[)" + one + R"(],"more":[)" + one + "]}";
  CHECK(summarise_kineto(wrapped, "f").kernels.at(KernelKind::matmul).count == 1.0);
}

TEST_CASE("what is no trace at all is refused at its beginning") {
  CHECK_THROWS_WITH(summarise_kineto("", "f"), Catch::Contains("f:1:1: this is no JSON"));
  CHECK_THROWS_WITH(summarise_kineto("x", "f"), Catch::Contains("f:1:1: this is no JSON"));
}
