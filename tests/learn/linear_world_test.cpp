// Learning in worlds whose answers are known without a prediction: choices between runs, and runs that one
// setting moves in straight lines.

#include "tests/catch.hpp"
#include "validate/learn/learn.hpp"

using namespace foretrain;

namespace {

RunResidual off_by(double factor, double filled = 0.5) { return {std::log(factor), std::nullopt, filled}; }

/// A world in which a step takes longer by what kernels are stretched, whose true stretch is `truth`, as a logarithm;
/// memory-bound kernels move the runs that name them, and whatever else is set moves nothing.
struct LinearWorld {
  std::vector<StackParameter> parameters = stack_parameters({.nodes = {}, .memory = true});
  std::vector<LearnedRun> runs;
  std::vector<double> pauses;        ///< by which each run took longer, as a logarithm
  std::vector<double> memory_bound;  ///< share of each run's step
  double truth = 0.2, memory = 0.0;
  double slope = 1.0;  ///< of a step's logarithm by the stretch's

  LinearWorld(int number, double truth_of_it)
      : pauses(static_cast<std::size_t>(number)), memory_bound(pauses.size()), truth(truth_of_it) {
    for (int run = 0; run < number; ++run) runs.push_back({1, false, -1, 1.0});
  }

  [[nodiscard]] std::size_t place(const char* name) const {
    return static_cast<std::size_t>(std::ranges::find(parameters, name, &StackParameter::name) - parameters.begin());
  }
  [[nodiscard]] std::size_t stretch() const { return place("step.kernel_stretch"); }
  [[nodiscard]] std::size_t memory_stretch() const { return place("workload.train.memory_stretch"); }
  [[nodiscard]] LearnedStack learned() const {
    return learn_stack(parameters, runs, [&](const std::vector<RunAt>& asked) {
      std::vector<RunResidual> left;
      for (const RunAt& one : asked) {
        const double moved = slope * one.setting[stretch()] + memory_bound[one.run] * one.setting[memory_stretch()];
        left.push_back({moved - truth - pauses[one.run], memory, 0.5});
      }
      return left;
    });
  }
};

}  // namespace

TEST_CASE("Times within three per cent are tied, measurements five per cent apart are not") {
  const auto errors = [](double measured, double predicted, double filled) {
    return learned_errors({{1, false, 0, 1.0}, {1, false, 0, measured}},
                          {off_by(1.0), off_by(predicted / measured, filled)}, 0.001);
  };
  // The second needs less memory: it is taken where it is predicted no more than 3 % slower.
  CHECK(errors(1.5, 1.03, 0.1).regret.value() == Approx(0.5));
  CHECK(errors(1.5, 1.031, 0.1).regret.value() == Approx(0.0).margin(1e-12));
  CHECK(errors(1.5, 0.97, 0.9).regret.value() == Approx(0.5));
  CHECK(errors(1.5, 0.98, 0.9).regret.value() == Approx(0.0).margin(1e-12));
  CHECK(errors(1.5, 1.02, 0.5).regret.value() == Approx(0.0).margin(1e-12));  // the first of equals
  CHECK(errors(1.05, 1.1, 0.5).pairs.value() == 1.0);
  CHECK_FALSE(errors(1.049, 1.1, 0.5).pairs);
  CHECK(errors(1.1, 1.0, 0.5).pairs.value() == 0.0);  // predicted alike is not predicted
}

TEST_CASE("Errors are of what was measured, choices of decisions with two runs") {
  const LearnedErrors errors = learned_errors(
      {{1, false, -1, 1.0}, {1, false, 3, 1.0}, {1, false, -1, 2.0}},
      {{std::log(1.5), std::log(0.8), 0.5}, {std::log(0.9), std::nullopt, 0.5}, {std::nullopt, std::log(1.4), 0.5}},
      0.1);
  CHECK(errors.mean == Approx((0.5 + 0.1) / 2.0));
  CHECK(errors.median == Approx((0.5 + 0.1) / 2.0));
  CHECK(errors.memory.value() == Approx((0.2 + 0.4) / 2.0));
  CHECK_FALSE(errors.pairs);
  CHECK_FALSE(errors.regret);
  CHECK_FALSE(learned_errors({{1, false, -1, 1.0}}, {off_by(1.5)}, 0.1).memory);
}

TEST_CASE("Runs that one stretch explains teach it, what they leave open stays, and what is off is named") {
  LinearWorld world(20, 0.2);
  world.pauses[7] = 2.0;
  const LearnedStack stack = world.learned();
  REQUIRE(stack.parameters.size() == world.parameters.size());
  const LearnedParameter& stretch = stack.parameters[world.stretch()];
  CHECK(stretch.determined);
  CHECK(stretch.position == Approx(0.2).margin(0.01));
  CHECK(stretch.runs == 20);
  // Twenty runs whose scale is the least, 3 %, of which 19 count: 0.03 / √19, and a little less by the prior.
  CHECK(stretch.spread == Approx(0.03 / std::sqrt(19.0)).epsilon(0.05));
  for (const LearnedParameter& other : stack.parameters) {
    if (&other == &stretch) continue;
    INFO(other.parameter.name);
    CHECK_FALSE(other.determined);
    CHECK(other.position == 0.0);
    CHECK(other.runs == 0);
  }
  CHECK(stack.unexplained == std::vector<std::size_t>{7});
  REQUIRE(stack.cases.size() == 20);
  CHECK(stack.cases[3].run == 3);
  CHECK(stack.cases[3].assumed.time.value() == Approx(-0.2));
  CHECK(stack.cases[3].fitted.time.value() == Approx(0.0).margin(0.01));
  CHECK(stack.cases[3].left_out.time.value() == Approx(0.0).margin(0.01));
  CHECK(stack.assumed.median == Approx(1.0 - std::exp(-0.2)));
  CHECK(stack.fitted.median < 0.01);
  CHECK(stack.left_out.median < 0.01);
  CHECK_FALSE(stack.scaled);
  CHECK(stack.spread < 0.01);  // nine of ten: the paused run is one of twenty
  CHECK(stack.memory_shortfall == 0.0);
}

TEST_CASE("A setting that helps three of few runs and harms a fourth is not learned, one that helps all it moves is") {
  LinearWorld world(15, 0.2);
  const auto learns_setting = [&] { return world.learned().parameters[world.memory_stretch()].determined; };
  for (const std::size_t run : {1, 3, 5, 7}) {
    world.memory_bound[run] = 0.5;
    world.pauses[run] = 0.15;
  }
  CHECK(learns_setting());
  world.pauses[1] = -0.05;
  CHECK_FALSE(learns_setting());
}

TEST_CASE("Memory that is predicted too small is a shortfall, too large is none; nodes are scaled where they differ") {
  LinearWorld world(10, 0.0);
  world.memory = -0.1;
  CHECK(world.learned().memory_shortfall == Approx(0.1).margin(0.02));
  world.memory = 0.1;
  world.runs[4].nodes = 2;
  const LearnedStack stack = world.learned();
  CHECK(stack.memory_shortfall == 0.0);
  CHECK(stack.left_out.memory.value() == Approx(std::expm1(0.1)).epsilon(0.2));
  REQUIRE(stack.scaled);
  CHECK(stack.scaled->median < 0.01);
}

TEST_CASE("Runs left out are predicted by the others alone") {
  // Every fifth run takes a tenth longer: what the others teach lacks it, what those teach has too much of it.
  LinearWorld world(40, 0.2);
  for (std::size_t run = 0; run < 40; run += 5) world.pauses[run] = 0.1;
  const LearnedStack stack = world.learned();
  for (std::size_t run = 0; run < 40; ++run) {
    INFO(run);
    CHECK(stack.cases[run].left_out.time.value() == Approx(run % 5 == 0 ? -0.1 : 0.0).margin(0.02));
  }
  CHECK(stack.spread == Approx(0.1).margin(0.02));  // of two in ten
}

TEST_CASE(
    "The next run lies within the spread nine times of ten: of ten runs it reaches the farthest, of twenty it leaves "
    "one") {
  for (const int runs : {10, 20}) {
    LinearWorld world(runs, 0.2);
    world.pauses[3] = 0.1;
    CHECK(world.learned().spread == Approx(runs == 10 ? 0.1 : 0.0).margin(0.02));
  }
}

TEST_CASE("A run is unexplained four scales away, which is the runs' own, three per cent at least") {
  const auto unexplained = [](double pause) {
    LinearWorld world(20, 0.0);
    world.pauses[7] = pause;
    return world.learned().unexplained;
  };
  CHECK(unexplained(0.11).empty());
  CHECK(unexplained(0.15) == std::vector<std::size_t>{7});
  CHECK(unexplained(-0.15) == std::vector<std::size_t>{7});
  // A tenth to both sides: of normal deviates whose median is that the scale is 0.148. Every run weighs
  // 1 / (0.148² + (0.1 / 1.5)²), all twenty know the stretch to 0.0363; and none is far off, not at 0.5 either.
  LinearWorld scattered(20, 0.0);
  for (std::size_t run = 0; run < 20; ++run) scattered.pauses[run] = run % 2 == 0 ? 0.1 : -0.1;
  const LearnedStack stack = scattered.learned();
  const LearnedParameter& stretch = stack.parameters[scattered.stretch()];
  const double prior = stretch.parameter.spread;
  CHECK(stretch.spread == Approx(1.0 / std::sqrt(1.0 / (0.0363 * 0.0363) + 1.0 / (prior * prior))).epsilon(0.02));
  CHECK(stack.unexplained.empty());
  scattered.pauses[7] = 0.5;
  CHECK(scattered.learned().unexplained.empty());
  scattered.pauses[7] = 0.8;
  CHECK(scattered.learned().unexplained == std::vector<std::size_t>{7});
}

TEST_CASE("Memory that is far off takes nothing from what times tell") {
  LinearWorld world(20, 0.2);
  world.memory = -0.5;
  const LearnedStack stack = world.learned();
  CHECK(stack.parameters[world.stretch()].spread == Approx(0.03 / std::sqrt(20.0)).epsilon(0.05));
  CHECK(stack.parameters[world.stretch()].position == Approx(0.2).margin(0.005));
  CHECK(stack.unexplained.empty());
  REQUIRE(stack.left_out.memory);
}

TEST_CASE("A run determines a setting that moves it by three per cent where the setting moves as stacks differ") {
  // Stacks differ by 0.1 in the stretch: a slope of 0.4 moves a run by 4 %, one of 0.25 by 2.5 %.
  LinearWorld world(20, 0.0);
  world.slope = 0.4;
  CHECK(world.learned().parameters[world.stretch()].runs == 20);
  world.slope = 0.25;
  CHECK(world.learned().parameters[world.stretch()].runs == 0);
}

TEST_CASE("A setting is learned where runs leave less than four fifths of what was open") {
  // Five runs known to 3 %, of slope s, beside a prior of 0.1: (0.1 / spread)^2 is 1 + 5 (0.1 s / 0.03)^2, which is
  // 1 / 0.8^2 = 1.5625 at a slope of 0.1006.
  LinearWorld world(5, 0.0);
  world.slope = 0.106;
  CHECK(world.learned().parameters[world.stretch()].determined);
  world.slope = 0.095;
  CHECK_FALSE(world.learned().parameters[world.stretch()].determined);
}
