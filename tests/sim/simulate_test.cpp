#include "sim/simulate.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/sim/graphs.hpp"

using namespace foretrain;
using namespace foretrain::test_graphs;

namespace {

// Six GPUs behind one PCIe switch, 16 GB/s each way: 160 MB over an idle route take 10 ms.
const Topology& switched() {
  static const Topology topology(test_nodes::cluster_of(test_nodes::pcie_switch_node(6)));
  return topology;
}

double ms(Seconds time) { return time.value() * 1e3; }

constexpr Seconds no_latency = 0.0_s;

const Fidelity both_fidelities[] = {Fidelity::flows, Fidelity::steps};

}  // namespace

TEST_CASE("bandwidth that a flow cannot use on one link goes to others on its other link") {
  // Three flows leave GPU 0 with a third of 16 GB/s each. One of them enters GPU 3, whose link has two thirds left for
  // the flow from GPU 5. Bytes in proportion to the rates: all end after 160/3 MB / (16/3 GB/s) = 10 ms.
  GraphMaker make(switched());
  for (const EndpointId to : {1, 2, 3}) {
    make.communicate(make.stream(), flows_at_once(no_latency, {{0, to, 160.0_MB / 3.0}}));
  }
  make.communicate(make.stream(), flows_at_once(no_latency, {{5, 3, 160.0_MB * 2.0 / 3.0}}));
  const Execution execution = simulate(make.graph(), switched(), Fidelity::flows);
  for (const Seconds finish : execution.finish) CHECK(ms(finish) == Approx(10.0).epsilon(1e-5));
}

TEST_CASE("repetitions of a phase have no barrier between strangers") {
  // Two pairs move 16 MB at 16 GB/s three times: 3 ms. Other traffic into GPU 1 (16 MB) makes the first pair's first
  // repetition last 2 ms: that pair ends at 4 ms, and so does the collective. The second pair meets other traffic of
  // 16 MB at 2.5 ms, half-way through its third repetition, which therefore ends at 3.5 ms. With a barrier after every
  // repetition they would meet in the second one (2 to 3.5 ms) and go on meeting in the third (3.5 to 5 ms).
  GraphMaker make(switched());
  const ResourceId late = make.stream();
  const LoweredCollective work{"pairs", {{no_latency, {{0, 1, 16.0_MB}, {2, 3, 16.0_MB}}, 3}}};
  const TaskId pairs = make.communicate(make.stream(), work);
  make.communicate(make.stream(), flows_at_once(no_latency, {{4, 1, 16.0_MB}}));
  make.compute(late, 2.5_ms);
  make.communicate(late, flows_at_once(no_latency, {{5, 3, 16.0_MB}}));
  const Execution execution = simulate(make.graph(), switched(), Fidelity::steps);
  CHECK(ms(execution.finish[static_cast<std::size_t>(pairs)]) == Approx(4.0).epsilon(1e-5));
}

TEST_CASE("what carries no bytes over a link costs its latency only") {
  // Phases of 1 ms latency: no flows, twice a flow of zero bytes, a flow to itself, twice no flows: 6 ms.
  const LoweredCollective work{
      "empty", {{1.0_ms, {}, 1}, {1.0_ms, {{0, 1, 0.0_B}}, 2}, {1.0_ms, {{1, 1, 5.0_MB}}, 1}, {1.0_ms, {}, 2}}};
  for (const Fidelity fidelity : both_fidelities) {
    GraphMaker make(switched());
    make.communicate(make.stream(), work);
    make.communicate(make.stream(), LoweredCollective{"nothing", {}});
    const Execution execution = simulate(make.graph(), switched(), fidelity);
    CHECK(ms(execution.finish[0]) == Approx(6.0));
    CHECK(ms(execution.finish[1]) == 0.0);
  }
}
