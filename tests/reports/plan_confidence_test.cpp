// Drawn plans: what is expected of them, which is best how often, and what choosing the least of many predictions
// costs.
#include "reports/studies/plan_confidence.hpp"

#include "model/scenario/load/load.hpp"
#include "reports/explain/what_if.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

UncertainPlan plan_of(double value, std::vector<Effect> effects, std::uint64_t kind = 0) {
  return {value, std::move(effects), {kind}, kind};
}

}  // namespace

TEST_CASE("A plan whose step is known is as predicted, and the best one always") {
  const SearchOdds odds = odds_of({plan_of(2.0, {{0.0, 0.0}}), plan_of(1.0, {{0.0, 0.0}})}, 0.0);
  CHECK(odds.plans[1].expected == Approx(1.0));
  CHECK(odds.plans[1].low == Approx(1.0));
  CHECK(odds.plans[1].high == Approx(1.0));
  CHECK(odds.plans[1].chance == 1.0);
  CHECK(odds.plans[1].regret == Approx(0.0).margin(1e-12));
  // The other one takes twice as long in every draw.
  CHECK(odds.plans[0].regret == Approx(1.0));
  CHECK(odds.curse == Approx(1.0));
}

TEST_CASE("One unknown makes a step lognormal") {
  // ln(step) has a standard deviation of 0.1: its mean is exp(0.1² / 2) = 1.005, its deciles exp(±1.2816 · 0.1).
  const SearchOdds odds = odds_of({plan_of(1.0, {{-0.1, 0.1}})}, 0.0);
  CHECK(odds.plans[0].expected == Approx(std::exp(0.005)).epsilon(1e-3));
  CHECK(odds.plans[0].low == Approx(std::exp(-0.12816)).epsilon(5e-3));
  CHECK(odds.plans[0].high == Approx(std::exp(0.12816)).epsilon(5e-3));
}

TEST_CASE("An unknown that moves both plans alike decides nothing") {
  // The network is not known, and both wait for it as long: the faster plan is the best in every draw.
  const SearchOdds odds = odds_of({plan_of(1.0, {{-0.3, 0.3}}), plan_of(1.01, {{-0.3, 0.3}}, 1)}, 0.0);
  CHECK(odds.plans[0].chance == 1.0);
  CHECK(odds.plans[1].regret == Approx(0.01));
}

TEST_CASE("A plan that depends on what is unknown loses to one as fast that does not") {
  // If the network is a deviation slower the first plan takes half as long again, where it is faster it gains
  // nothing. It has half the draws beside the other's half, yet its mean is higher, by the upper half's exp(0.4 z) − 1.
  const SearchOdds odds = odds_of({plan_of(1.0, {{0.0, 0.4}}), plan_of(1.001, {{0.0, 0.0}}, 1)}, 0.0);
  CHECK(odds.plans[0].chance == Approx(0.5));
  CHECK(odds.plans[1].chance == Approx(0.5));
  CHECK(odds.plans[0].expected > 1.15);
  CHECK(odds.plans[1].expected == Approx(1.001));
  CHECK(odds.plans[0].regret > odds.plans[1].regret);
}

TEST_CASE("The least of many predictions that are off by themselves is too good") {
  // Of n plans as fast as each other, predicted with errors of 5 %, the chosen one's prediction lies below the truth by
  // the mean of the largest of n normal deviates: 0 for one, 1.42 of 5 % for eight, 2.34 for 64 (within what 64 draws
  // tell: 0.3 of 5 %).
  const auto curse_of = [](int count) {
    std::vector<UncertainPlan> plans;
    for (int i = 0; i < count; ++i) plans.push_back(plan_of(1.0, {}, static_cast<std::uint64_t>(i)));
    return std::log(odds_of(plans, 0.05).curse) / 0.05;
  };
  CHECK(curse_of(1) == Approx(0.0).margin(0.05));
  CHECK(curse_of(8) == Approx(1.42).margin(0.35));
  CHECK(curse_of(64) == Approx(2.34).margin(0.35));
  // Of plans that share one of two parts, half the variance is common: the others' spread is 5 % ÷ √2.
  std::vector<UncertainPlan> half;
  for (std::uint64_t i = 0; i < 64; ++i) half.push_back({1.0, {}, {0, i}, i});
  CHECK(std::log(odds_of(half, 0.05).curse) / 0.05 == Approx(2.34 / std::sqrt(2.0)).margin(0.35));
  // Plans of the same parts are off together, and nothing is chosen among them.
  std::vector<UncertainPlan> alike(64, plan_of(1.0, {}));
  CHECK(std::log(odds_of(alike, 0.05).curse) / 0.05 == Approx(0.0).margin(0.05));
}

TEST_CASE("Of what is uncertain, runs of a cluster teach its kernels, its dispatch and its network's bandwidth") {
  const Scenario scenario = load_scenario("gpt2-xl-dgx-a100");
  std::map<std::string, bool> taught;
  for (const UncertainResource& one : uncertain_resources(scenario, 0.1)) taught[one.name] = one.taught_by_runs;
  CHECK(taught == std::map<std::string, bool>{{"GPU compute", true},
                                              {"GPU memory bandwidth", true},
                                              {"NVLink", false},
                                              {"PCIe and CPU sockets", false},
                                              {"network bandwidth", true},
                                              {"network latency", false},
                                              {"kernel dispatch on the CPU", true}});
}
