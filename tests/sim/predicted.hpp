// Times of catalogue scenarios and single collectives, by every executor.
#pragma once

#include "model/collectives/contention.hpp"
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sim/graphs.hpp"

namespace foretrain::test {

inline constexpr Fidelity all_fidelities[] = {Fidelity::estimate, Fidelity::flows, Fidelity::steps};

using Overrides = std::vector<std::string>;

inline Result predicted(const std::string& scenario, Fidelity fidelity, const Overrides& overrides = {}) {
  return predict(load_scenario(scenario, overrides), fidelity);
}
inline double milliseconds(const std::string& scenario, Fidelity fidelity, const Overrides& overrides = {}) {
  return predicted(scenario, fidelity, overrides).time().value() * 1e3;
}
/// Of the network alone, without what a library of collectives loses on it.
inline double on_wires(const std::string& scenario, Fidelity fidelity, Overrides overrides = {}) {
  overrides.emplace_back("cluster.nccl=none");
  return milliseconds(scenario, fidelity, overrides);
}

inline void expect_milliseconds(const std::string& scenario, double expected, double tolerance,
                                const Overrides& overrides = {}) {
  INFO(scenario);
  for (const Fidelity fidelity : all_fidelities) {
    CHECK(milliseconds(scenario, fidelity, overrides) == Approx(expected).epsilon(tolerance));
  }
}
inline void expect_on_wires(const std::string& scenario, double expected, double tolerance, Overrides overrides = {}) {
  overrides.emplace_back("cluster.nccl=none");
  expect_milliseconds(scenario, expected, tolerance, overrides);
}

inline BackgroundFlow between_gpus(int from, int to, BytesPerSecond rate = BytesPerSecond::infinity()) {
  return {{BackgroundFlow::Place::Kind::gpu, from, 0}, {BackgroundFlow::Place::Kind::gpu, to, 0}, rate, {}};
}

/// One collective by itself.
inline double took(const LoweredCollective& lowered, const Topology& topology, Fidelity fidelity,
                   const std::vector<BackgroundFlow>& background = {}) {
  if (fidelity == Fidelity::estimate) return uncontended_time(lowered, topology, background).value();
  test_graphs::GraphMaker make(topology);
  make.communicate(make.stream(), lowered);
  return simulate(make.graph(), topology, fidelity, background).makespan.value();
}

}  // namespace foretrain::test
