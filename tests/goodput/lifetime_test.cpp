// R17: what failures leave of a training's time.
#include "model/goodput/lifetime.hpp"

#include "model/goodput/checkpoint_interval.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Steps of 1 s; a failure in 10,000 s on average, a checkpoint of 20 s that training waits for, a restart of 100 s.
/// √(2 · 20 · 10,000) = 632 s of work between checkpoints.
Lifetime textbook() {
  Lifetime life;
  life.steps = 1e6;
  life.step = Seconds(1.0);
  life.every = 632;
  life.blocked = Seconds(20.0);
  Interruption failure;
  failure.what = "node";
  failure.mtbf = Seconds(10'000.0);
  failure.takes_machine = true;
  failure.restart = Seconds(100.0);
  life.interruptions.push_back(failure);
  return life;
}

double goodput_of(const Lifetime& life) { return simulate_lifetime(life, 300, 1).shares.useful; }

double formula_of(const Lifetime& life) {
  return daly_goodput(life.every * life.step, life.blocked, life.mean_recovery(), life.mtbf());
}

}  // namespace

TEST_CASE("the optimum of Young and of Daly") {
  const Seconds checkpoint(20.0), mtbf(10'000.0);
  CHECK(young_interval(checkpoint, mtbf).value() == Approx(632.456).epsilon(1e-5));
  // d/(2M) = 0.001: 632.456 · (1 + 0.031623/3 + 0.001/9) - 20.
  CHECK(daly_interval(checkpoint, mtbf).value() == Approx(632.456 * 1.0106519 - 20.0).epsilon(1e-5));
  // A checkpoint that takes twice the time between failures or longer: one a failure.
  CHECK(daly_interval(Seconds(20'000.0), mtbf) == mtbf);
}

TEST_CASE("goodput is Daly's within 2 % where what he assumes holds") {
  for (const int every : {100, 300, 632, 2000, 6000}) {
    Lifetime life = textbook();
    life.every = every;
    CHECK(goodput_of(life) == Approx(formula_of(life)).epsilon(0.02));
  }
  // Failures that come hundreds of times faster, and next to never.
  for (const double mtbf : {1500.0, 1e5, 1e7}) {
    Lifetime life = textbook();
    life.interruptions[0].mtbf = Seconds(mtbf);
    life.every = static_cast<int>(daly_interval(life.blocked, life.mtbf()).value());
    CHECK(goodput_of(life) == Approx(formula_of(life)).epsilon(0.02));
  }
  // Several causes are one whose rate is their sum.
  Lifetime split = textbook();
  split.interruptions[0].mtbf = Seconds(15'000.0);
  split.interruptions.push_back(split.interruptions[0]);
  split.interruptions[1].mtbf = Seconds(30'000.0);
  CHECK(goodput_of(split) == Approx(formula_of(textbook())).epsilon(0.02));
}

TEST_CASE("the interval that the simulation finds best is as good as Daly's") {
  const IntervalSearch search = search_interval(textbook(), 300, 1);
  CHECK(search.daly->every == 619);
  CHECK(search.young->every == 632);
  CHECK(search.best.goodput >= search.daly->goodput);
  CHECK(search.best.goodput == Approx(search.daly->goodput).epsilon(0.005));
  // The optimum is flat: half and twice Daly's interval cost 25 % more waste, sixteen times of it shows.
  CHECK(search.best.every > 619 / 2);
  CHECK(search.best.every < 619 * 2);
  CHECK(search.tried.front().goodput < search.best.goodput);
  CHECK(search.tried.back().goodput < search.best.goodput);
}

TEST_CASE("off Daly's formula in the direction in which its assumptions fail") {
  const double by_formula = formula_of(textbook());
  SECTION("a checkpoint that is safe only later loses more than one that holds training up for as long") {
    Lifetime life = textbook();
    life.blocked = Seconds(0.0);
    life.unsafe = Seconds(600.0);
    // The formula of a checkpoint that costs nothing is too high, that of one which training waits for too low.
    CHECK(goodput_of(life) < 0.99 * formula_of(life));
    life.blocked = Seconds(600.0);
    const double waiting = formula_of(life);
    life.blocked = Seconds(0.0);
    CHECK(goodput_of(life) > 1.1 * waiting);
  }
  SECTION("without spares the training waits for repairs") {
    Lifetime life = textbook();
    life.spares = 0;
    life.repair = Seconds(5000.0);
    CHECK(goodput_of(life) < 0.8 * by_formula);
    // A failure in 10,000 s of machines that run, and 5,000 s without: at least a third of the time is lost.
    const LifetimeShares shares = simulate_lifetime(life, 300, 1).shares;
    CHECK(shares.machines == Approx(5000.0 / 15'000.0).epsilon(0.1));
    // A spare that is back before the next failure is as good as endlessly many.
    life.spares = 20;
    CHECK(goodput_of(life) == Approx(goodput_of(textbook())).epsilon(0.005));
    life.spares.reset();
    CHECK(goodput_of(life) == goodput_of(textbook()));
  }
  SECTION("Young's first order overstates the waste where failures come within an interval") {
    Lifetime life = textbook();
    life.every = 10'000;
    const double young = 1.0 - 20.0 / 10'000.0 - (0.5 * 10'000.0 + 100.0) / 10'000.0;
    CHECK(goodput_of(life) > young);
  }
  SECTION("a checkpoint that waits for the last one to be written") {
    Lifetime life = textbook();
    life.least_interval = Seconds(1000.0);
    CHECK(goodput_of(life) < 0.7 * by_formula);
  }
}

TEST_CASE("a failure that takes a part of the work with it loses that part of what was not saved") {
  const auto lost = [](double share) {
    Lifetime life = textbook();
    life.every = 2000;
    life.interruptions[0].loses = share;
    return simulate_lifetime(life, 300, 1).shares.lost;
  };
  // Of a tenth of the time that all would cost, as a checkpoint every 2000 s and a failure every 10,000 s make it.
  CHECK(lost(1.0) == Approx(0.1).epsilon(0.2));
  CHECK(lost(0.75) == Approx(0.75 * lost(1.0)).epsilon(0.1));
  CHECK(lost(0.25) == Approx(0.25 * lost(1.0)).epsilon(0.1));
  CHECK(lost(0.0) == 0.0);
}

TEST_CASE(
    "Intervals are no shorter than a checkpoint takes, and beside the training no shorter than is worth writing") {
  // Written beside the training in 40 s: Young's formula, for a checkpoint that costs nothing, would save every step.
  Lifetime beside = textbook();
  beside.blocked = Seconds(0.0);
  beside.unsafe = beside.least_interval = Seconds(40.0);
  const IntervalSearch search = search_interval(beside, 300, 1);
  CHECK_FALSE(search.young);
  CHECK_FALSE(search.daly);
  double most = 0.0;
  for (const IntervalChoice& tried : search.tried) {
    CHECK(tried.every >= 40);
    most = std::max(most, tried.goodput);
  }
  // Half an interval more is lost at each failure, one in 10,000 s: a thousandth of the time is 20 s of interval.
  CHECK(search.best.every > 40);
  CHECK(search.best.goodput >= most - 0.001);
  // A training of 30 steps ends before any is written, and is saved once at most.
  beside.steps = 30.0;
  for (const IntervalChoice& tried : search_interval(beside, 10, 1).tried) CHECK(tried.every == 30);
}

TEST_CASE("without failures a training takes its steps and checkpoints") {
  Lifetime life = textbook();
  life.interruptions[0].mtbf = Seconds(1e15);
  life.steps = 6320.0;
  // Ten intervals; none is saved at the end.
  const LifetimeResult result = simulate_lifetime(life, 10, 1);
  CHECK(result.mean.value() == Approx(6320.0 + 9 * 20.0));
  CHECK(result.p99 == result.p50);
  CHECK(result.shares.useful == Approx(6320.0 / 6500.0));
}

TEST_CASE("a failure is noticed when so many signs of life are missing") {
  Lifetime life = textbook();
  life.heartbeat = Seconds(100.0);
  life.missed = 3;
  CHECK(life.mean_detection().value() == Approx(250.0));
  // About one failure in 10,000 s of work and 350 s of recovery.
  const LifetimeShares shares = simulate_lifetime(life, 300, 1).shares;
  CHECK(shares.detection / shares.restarts == Approx(250.0 / 100.0).epsilon(0.03));
}

TEST_CASE("what loses nothing delays, in proportion to what stands still") {
  Lifetime life = textbook();
  life.interruptions[0].loses = 0.0;
  const LifetimeShares all = simulate_lifetime(life, 300, 1).shares;
  CHECK(all.lost == 0.0);
  life.interruptions[0].stops = 0.25;
  const LifetimeShares part = simulate_lifetime(life, 300, 1).shares;
  CHECK(part.restarts / part.useful == Approx(all.restarts / all.useful / 4.0).epsilon(0.05));
  // A slow device that is noticed late costs as a restart of that length would.
  life.interruptions[0].stops = 1.0;
  life.interruptions[0].before = Seconds(900.0);
  const LifetimeShares slow = simulate_lifetime(life, 300, 1).shares;
  CHECK(slow.stragglers / slow.restarts == Approx(9.0).epsilon(0.05));
}

TEST_CASE("lengths are the same for the same seed, and longer ones are rarer") {
  const LifetimeResult one = simulate_lifetime(textbook(), 200, 7), same = simulate_lifetime(textbook(), 200, 7);
  CHECK(one.mean == same.mean);
  CHECK(one.shares.lost == same.shares.lost);
  CHECK(simulate_lifetime(textbook(), 200, 8).mean != one.mean);
  // Cached values of failures hold for the same ones alone: not of others that come more often.
  Lifetime worse = textbook();
  worse.interruptions.front().mtbf = Seconds(5'000.0);
  CHECK(simulate_lifetime(worse, 200, 7).mean > one.mean);
  CHECK(simulate_lifetime(textbook(), 200, 7).mean == one.mean);
  CHECK(one.p5 < one.p50);
  CHECK(one.p50 < one.p90);
  CHECK(one.p90 < one.p99);
  // About 106 failures, of about 470 s each: the deviation is √106 · 470 · √(4/3) or so, 0.5 % of the length.
  CHECK((one.p99 - one.p50) / one.p50 < 0.03);
}

TEST_CASE("a training that hardly gets on is given up, and its length extrapolated") {
  Lifetime life = textbook();
  life.interruptions[0].mtbf = Seconds(90.0);
  const LifetimeResult result = simulate_lifetime(life, 30, 1);
  CHECK_FALSE(result.ends);
  CHECK(result.shares.useful < 0.01);
  CHECK(result.mean > Seconds(1e8));
  // Restarts that are never through end, too.
  life.interruptions[0].mtbf = Seconds(1.0);
  CHECK_FALSE(simulate_lifetime(life, 30, 1).ends);
}

TEST_CASE("what a training's time goes to adds up to its length, whatever happens to it") {
  Lifetime life = textbook();
  life.steps = 2e5;
  life.heartbeat = Seconds(30.0);
  life.missed = 3;
  life.spares = 1;
  life.repair = Seconds(4000.0);
  Interruption slow = life.interruptions[0];
  slow.detected = false;
  slow.before = Seconds(500.0);
  slow.loses = 0.25;
  slow.stops = 0.5;
  life.interruptions.push_back(slow);
  for (const double mtbf : {20'000.0, 3'000.0}) {  // so that some fail while they start
    for (Interruption& cause : life.interruptions) cause.mtbf = Seconds(mtbf);
    const LifetimeResult result = simulate_lifetime(life, 100, 1);
    REQUIRE(result.ends);
    const LifetimeShares& s = result.shares;
    CHECK(s.useful + s.checkpoints + s.lost + s.detection + s.machines + s.restarts + s.stragglers == Approx(1.0));
    // Each training does its work once that counts.
    CHECK(s.useful * result.mean.value() == Approx(life.steps * life.step.value()));
  }
}

TEST_CASE("recovering takes what stands still, with what was lost before, weighted by how often it happens") {
  Lifetime life = textbook();
  life.heartbeat = Seconds(100.0);
  life.missed = 3;
  // Every 10,000 s: half of 100 s and of 250 s until it is noticed, and 40 s before. Every 20,000 s: 200 s.
  life.interruptions[0].stops = 0.5;
  life.interruptions[0].before = Seconds(40.0);
  Interruption replaced;
  replaced.mtbf = Seconds(20'000.0);
  replaced.detected = false;
  replaced.restart = Seconds(200.0);
  life.interruptions.push_back(replaced);
  CHECK(life.mean_recovery().value() == Approx((2.0 * (0.5 * 350.0 + 40.0) + 200.0) / 3.0));
}

TEST_CASE("parts fail as often as their rates say") {
  Lifetime life = textbook();
  life.interruptions.resize(3, life.interruptions[0]);
  life.interruptions[0].mtbf = Seconds(20'000.0);
  life.interruptions[1].mtbf = Seconds(30'000.0);
  life.interruptions[2].mtbf = Seconds(60'000.0);
  const std::vector<double> met = simulate_lifetime(life, 300, 1).interruptions;
  // About 32,000 failures: three, two and one in six, each within 3 %.
  CHECK(met[0] / met[2] == Approx(3.0).epsilon(0.05));
  CHECK(met[1] / met[2] == Approx(2.0).epsilon(0.05));
}

TEST_CASE("a hundred failures make lengths nearly normal: percentiles lie as its quantiles do") {
  const LifetimeResult result = simulate_lifetime(textbook(), 1000, 1);
  CHECK(result.ends);
  // 1.645 standard deviations on both sides, 1.282 and 2.326.
  const double sigma = (result.p95 - result.p5) / (2.0 * Seconds(1.645));
  CHECK((result.p50 - result.p5).value() == Approx(1.645 * sigma).epsilon(0.12));
  CHECK((result.p90 - result.p50).value() == Approx(1.282 * sigma).epsilon(0.12));
  CHECK((result.p99 - result.p50).value() == Approx(2.326 * sigma).epsilon(0.15));
}

TEST_CASE("the search goes from a 32nd of Daly's interval to 32 times of it, by powers of two") {
  const IntervalSearch search = search_interval(textbook(), 30, 1);
  CHECK(search.tried.front().every == 20);  // a 32nd of 619 is 19, but a checkpoint takes 20 s
  CHECK(search.tried.back().every == 619 * 32);
  for (double factor = 1.0 / 16.0; factor <= 32.0; factor *= 2.0) {
    const auto every = static_cast<int>(std::round(619.0 * factor));
    CHECK(std::ranges::count(search.tried, every, &IntervalChoice::every) == 1);
  }
  // If failures are as frequent as steps, every step is tried; a training of one step has one choice.
  Lifetime life = textbook();
  life.steps = 1000.0;
  life.blocked = Seconds(0.5);
  life.interruptions[0].mtbf = Seconds(100.0);
  life.interruptions[0].restart = Seconds(1.0);
  CHECK(search_interval(life, 10, 1).tried.front().every == 1);
  life.steps = 1.0;
  REQUIRE(search_interval(life, 10, 1).tried.size() == 1);
  CHECK(search_interval(life, 10, 1).tried.front().every == 1);
}
