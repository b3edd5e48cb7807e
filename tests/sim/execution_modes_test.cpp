// Launching of work: execution modes (R1), asynchronous execution and barriers (R2), parallel branches and
// streams (R3); by every executor.
#include "model/cost/device_share.hpp"
#include "model/cost/launches.hpp"
#include "tests/sim/predicted.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

double microseconds(const std::string& scenario, Fidelity fidelity) { return milliseconds(scenario, fidelity) * 1e3; }

void expect_microseconds(const std::string& scenario, double expected) {
  expect_milliseconds(scenario, expected * 1e-3, 1e-5);
}
double finish_us(const Result& result, const std::string& task) {
  return result.tasks()->finish.at(task).value() * 1e6;
}

/// A square product on the notebooks' V100.
struct Product {
  explicit Product(std::int64_t n) {
    const Scenario scenario = load_scenario("front-end-matmul-asynchronous");
    const Gpu& gpu = scenario.cluster.node.gpu;
    const Operator op{"", Matmul{.m = n, .n = n, .k = n}, Precision::fp32, 1};
    const Seconds time = operator_cost(op, gpu, scenario.calibration).device;
    alone_us = time.value() * 1e6;
    us = launched_cost(op, ExecutionMode::eager, false, gpu, scenario.calibration).device.value() * 1e6;
    multiprocessors = device_share(op, time, gpu, scenario.calibration).multiprocessors;
  }
  double us = 0.0;        ///< with the gap to the one behind it
  double alone_us = 0.0;  ///< as a task of its own, which nobody launches
  double multiprocessors = 0.0;
};

// host.dispatch_us, launch_latency_us and synchronize_us of the published calibration.
constexpr double dispatch = 7.0, latency = 2.6, back = 3.3;

ModelCallResult call(const std::string& scenario, const std::string& execution, int batch) {
  const Result one = predicted(scenario, Fidelity::estimate,
                               {"plan.execution=" + execution, "workload.tasks.net.run.repeat=1",
                                "workload.tasks.net.run.forward.batch=" + std::to_string(batch)});
  return one.tasks()->calls.at("net");
}

}  // namespace

TEST_CASE("R2: ten products, enqueued: the front end is free at once, the device works without a gap") {
  const Product product(1000);
  REQUIRE(product.us > dispatch);
  for (const Fidelity fidelity : all_fidelities) {
    const Result r = predicted("front-end-matmul-asynchronous", fidelity);
    // Ten dispatches; what the notebook's clock shows without a synchronise.
    CHECK(finish_us(r, "enqueued") == Approx(10 * dispatch));
    // The first product starts after one dispatch and the latency; one way back at the end.
    CHECK(finish_us(r, "done") == Approx(dispatch + latency + 10 * product.us + back));
  }
}

TEST_CASE("R2: ten products, each waited for, pay dispatch, latency and the way back ten times") {
  const Product product(1000);
  expect_microseconds("front-end-matmul-synchronised", 10 * (dispatch + latency + product.us + back));
}

TEST_CASE("R2: a number read in every iteration is a barrier, read once it costs nothing") {
  const Product product(512);
  REQUIRE(product.us > dispatch);
  // 8 bytes at 1.36 GB/s; its launch is on its way while the device still computes.
  const double copy = 8.0 / 1.36e3;
  const double each = 100 * (dispatch + latency + 10 * product.us + copy + back);
  const double once = dispatch + latency + 1000 * product.us + copy + back;
  expect_microseconds("front-end-item-each-iteration", each);
  expect_microseconds("front-end-item-once", once);
}

TEST_CASE("R2: a printed result is copied, waited for and formatted") {
  const Product product(1000);
  // 4 MB to pageable memory at 1.36 GB/s, formatting for 300 us; the copy's launch (7 + 4 us) hides behind the product.
  const double print = 4e6 / 1.36e3 + back + 300.0;
  REQUIRE(product.us > dispatch);
  expect_microseconds("front-end-print-each-iteration", 10 * (dispatch + latency + product.us + print));
}

TEST_CASE("R3: one front end keeps two devices busy") {
  // 50 products of some ms on each; the second device's queue is filled 50 dispatches later than the first one's.
  const Product product(4000);
  expect_microseconds("parallel-branches-one-front-end", 51 * dispatch + latency + 50 * product.us + back);
}

TEST_CASE("R3: eight products that fill the device take eight times as long as one") {
  const Product product(4000);
  for (const Fidelity fidelity : all_fidelities) {
    const double eight = microseconds("parallel-eight-large-operators", fidelity);
    // Only their starts and drains (5.2 us of some ms) overlap.
    CHECK(eight == Approx(8 * product.us).epsilon(0.002));
    CHECK(eight <= 8 * product.us);
  }
}

TEST_CASE("R3: small products on eight streams run beside each other until the device is full") {
  const Product product(256);
  // Eight at a time need 8 s of the multiprocessors; their common speed is 1 / (8 s), or 1 where that is more.
  const double speed = std::min(1.0, 1.0 / (8 * product.multiprocessors));
  REQUIRE(8 * speed > 2.0);
  for (const Fidelity fidelity : all_fidelities) {
    const double one = microseconds("parallel-small-operators-one-stream", fidelity);
    const double eight = microseconds("parallel-small-operators-eight-streams", fidelity);
    CHECK(one == Approx(400 * product.alone_us));
    CHECK(eight == Approx(50 * product.alone_us / speed));
    // Launched one after the other by one host thread: 400 dispatches, and the last product behind them.
    const double launched = microseconds("parallel-small-operators-front-end", fidelity);
    CHECK(launched >= 400 * dispatch);
    CHECK(launched <= 400 * dispatch + latency + 2 * product.us + back);
  }
}

TEST_CASE("R1: the MLP's kernels, launches and intermediate results in the three modes") {
  // linear, relu, linear, relu, linear: five kernels of 7 us dispatch, compiled of 3 us. Products are the library's,
  // and a relu behind one stays a kernel (torch.compile's default, TorchInductor's extern kernels).
  const ModelCallResult eager = call("execution-mlp", "eager", 1);
  CHECK(eager.kernels == 5);
  CHECK(eager.host.value() == Approx(5 * 7e-6));
  // Results of 256, 256, 128 and 128 numbers in fp32 stand between them.
  CHECK(eager.intermediates.value() == Approx(4 * (2 * 256 + 2 * 128)));
  const ModelCallResult compiled = call("execution-mlp", "compiled", 1);
  CHECK(compiled.kernels == 5);
  CHECK(compiled.fused == 0);
  CHECK(compiled.host.value() == Approx(5 * 3e-6));
  CHECK(compiled.intermediates == eager.intermediates);
  const ModelCallResult graph = call("execution-mlp", "cuda_graph", 1);
  CHECK(graph.kernels == 5);
  CHECK(graph.host.value() == Approx(2.5e-6));
}

TEST_CASE("R1: many calls take the front end's time or the device's, whichever is longer") {
  for (const std::string scenario : {"execution-mlp", "execution-lenet", "execution-alexnet"}) {
    for (const std::string execution : {"eager", "compiled", "cuda_graph"}) {
      for (const int batch : {1, 256}) {
        INFO(scenario << " " << execution << " batch " << batch);
        const Overrides overrides = {"plan.execution=" + execution, "workload.tasks.net.run.repeat=200",
                                     "workload.tasks.net.run.forward.batch=" + std::to_string(batch)};
        const Result many = predicted(scenario, Fidelity::estimate, overrides);
        const ModelCallResult& one = many.tasks()->calls.at("net");
        const double longer = std::max(one.host, one.device).value();
        const double total = many.time().value();
        CHECK(total >= 200 * longer);
        // The device waits for the first launch, the host for the last kernels.
        CHECK(total <= 200 * longer + one.device.value() + one.host.value() + 1e-6 * (latency + back));
        CHECK(predicted(scenario, Fidelity::flows, overrides).time().value() == Approx(total).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("R1: with the batch the device takes over from the front end") {
  for (const std::string scenario : {"execution-mlp", "execution-lenet", "execution-alexnet"}) {
    for (const std::string execution : {"eager", "compiled", "cuda_graph"}) {
      bool device_bound = false;
      for (int batch = 1; batch <= 4096; batch *= 2) {
        const bool bound = !call(scenario, execution, batch).front_end_bound();
        INFO(scenario << " " << execution << " batch " << batch);
        CHECK((bound || !device_bound));  // and never back
        device_bound = bound;
      }
      CHECK(device_bound);  // 4096 samples keep any of them busy
    }
  }
}

TEST_CASE("R1: compiled, AlexNet's kernels are fused and its intermediate results are few") {
  // Eager 33 kernels: eight casts of weights are folded, and seven relus and dropouts join what reads or writes their
  // tensors: 33 - 8 - 7. Fewer results stand between kernels, and the device needs less time.
  const ModelCallResult eager = call("execution-alexnet", "eager", 1);
  const ModelCallResult compiled = call("execution-alexnet", "compiled", 1);
  CHECK(eager.kernels == 33);
  CHECK(compiled.fused == 7);
  CHECK(compiled.kernels == 33 - 8 - 7);
  CHECK(compiled.intermediates < eager.intermediates);
  CHECK(compiled.device < eager.device);
}

TEST_CASE("R1: a training step and a call of its model have the same kernels") {
  // One GPU, one micro-batch, no recomputation. What the step computes is the model's forward and backward pass, and
  // its host overhead is what dispatching takes longer than that, beside the time between steps.
  for (const std::string execution : {"eager", "compiled", "cuda_graph"}) {
    INFO(execution);
    const Scenario step = load_scenario("data-parallel-resnet18-one-gpu", {"plan.execution=" + execution});
    const TrainResult trained = *predict(step, Fidelity::estimate).train();
    const auto batch = std::get<TrainWorkload>(step.workload).micro_batch;
    const Scenario calls = load_scenario_text(
        "cluster: { node: v100-workstation-x2 }\nworkload: { tasks: [ { id: net, on: gpu0, run: { forward_backward: { "
        "model: resnet-18-d2l, batch: " +
            std::to_string(batch) + ", precision: fp32 } } } ] }\nplan: { execution: " + execution + " }\n",
        "calls");
    const ModelCallResult call = predict(calls, Fidelity::estimate).tasks()->calls.at("net");
    CHECK(trained.breakdown.compute.value() == Approx(call.device.value()));
    CHECK(trained.execution.has_value() == (execution != "eager"));
    if (trained.execution) {
      CHECK(trained.execution->kernels == call.kernels);
      CHECK((trained.execution->fused > 0) == (execution == "compiled"));
    }
  }
}
