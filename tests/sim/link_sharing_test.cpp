// SimGrid's sharing of links among flows, against max–min fairness.
#include "sim/link_sharing.hpp"

#include <map>
#include <set>

#include "model/base/number.hpp"
#include "sim/platform.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

using Random = std::mt19937;

int below(Random& random, int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); }

/// Routes over one to four of half as many links, of which some are crossed twice.
SharingSystem::Folded random_links(Random& random, int routes = 24) {
  SharingSystem system;
  for (int link = 0; link < routes / 2; ++link) {
    system.bandwidth.push_back(BytesPerSecond(1e9 * (1 + below(random, 50))));
  }
  for (int route = 0; route < routes; ++route) {
    std::vector<std::int32_t> crossed;
    for (int i = below(random, 4); i >= 0; --i) crossed.push_back(below(random, routes / 2));
    system.add_flow(0, crossed, 1 + below(random, 8));
  }
  return keep_apart(system);
}

/// The rate of a flow of each route by definition; none where nothing moves. So many flows of a route are one of as
/// many times the weight.
std::vector<BytesPerSecond> fair_rates(SharingSystem::Folded system, const std::vector<int>& flows) {
  std::vector<bool> moving;
  for (std::size_t route = 0; route < flows.size(); ++route) {
    moving.push_back(flows[route] > 0);
    system.weight[route] *= std::max(flows[route], 1);
  }
  std::vector<BytesPerSecond> rates = MaxMinRates(system).of(moving);
  for (std::size_t route = 0; route < flows.size(); ++route) rates[route] /= std::max(flows[route], 1);
  return rates;
}

/// Rates of all routes as flows come and go, after each change. Throws where they are not the fair ones.
std::vector<BytesPerSecond> share_as_flows_come_and_go(unsigned seed) {
  Random random(seed);
  const SharingSystem::Folded system = random_links(random);
  std::vector<int> flows(system.classes());
  std::vector<BytesPerSecond> all;
  for (int change = 0; change < 100; ++change) {
    for (int i = below(random, 6); i >= 0; --i) flows[at_index(below(random, 24))] = std::max(below(random, 5) - 1, 0);
    std::vector<RouteRate> moving;
    for (std::size_t route = 0; route < flows.size(); ++route) {
      if (flows[route] > 0) moving.push_back({static_cast<RouteIndex>(route), flows[route]});
    }
    ask_simgrid(system, moving);
    const std::vector<BytesPerSecond> fair = fair_rates(system, flows);
    for (const RouteRate& route : moving) {
      all.push_back(route.rate);
      const double off = route.rate / fair[at_index(route.route)] - 1.0;
      if (std::abs(off) > 1e-6) throw std::runtime_error("SimGrid's rates are not the fair ones");
    }
  }
  return all;
}

/// Two flows on each of so many links have half of it.
void share_in_pairs(int links) {
  SharingSystem system;
  std::vector<RouteRate> moving;
  for (int link = 0; link < links; ++link) {
    system.bandwidth.push_back(10.0_GBps);
    for (int flow = 0; flow < 2; ++flow) {
      moving.push_back({static_cast<RouteIndex>(system.flows())});
      system.add_flow(0, std::vector<std::int32_t>{link});
    }
  }
  ask_simgrid(keep_apart(system), moving);
  for (const RouteRate& route : moving) REQUIRE(route.rate == 5.0_GBps);
}

}  // namespace

TEST_CASE("SimGrid shares links fairly, with the same bits whatever has begun and ended before") {
  std::vector<std::vector<BytesPerSecond>> first;
  for (unsigned seed = 0; seed < 50; ++seed) first.push_back(share_as_flows_come_and_go(seed));
  for (unsigned seed = 50; seed-- > 0;) CHECK(share_as_flows_come_and_go(seed) == first[seed]);
  share_in_pairs(20'000);  // so many communications are not kept
  for (unsigned seed = 0; seed < 50; ++seed) CHECK(share_as_flows_come_and_go(seed) == first[seed]);
}

TEST_CASE("Links that routes cross 10,000 times as often are shared as those of a 10,000th of their bandwidth") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const SharingSystem::Folded once = random_links(random);
    SharingSystem::Folded often = once;
    for (BytesPerSecond& bandwidth : often.bandwidth) bandwidth *= 10'000;
    for (auto& crossings : often.crossings) {
      for (SharingSystem::Folded::Crossing& crossing : crossings) crossing.flows *= 10'000;
    }
    Platform one(once), other(often);
    for (RouteIndex route = 0; route < 24; ++route) {
      const Bytes bytes(1e9 * (1 + below(random, 5)));
      for (Platform* platform : {&one, &other}) platform->start(route, bytes, route, Seconds(0.0));
    }
    for (Platform* platform : {&one, &other}) platform->share_links();
    CHECK(other.first_end().value() == Approx(one.first_end().value()));
  }
}

TEST_CASE("Rates that are settled in parts are those that SimGrid finds for all at once") {
  std::size_t settled = 0, moving = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const int routes = seed % 2 == 0 ? 24 : 200;
    const SharingSystem::Folded system = random_links(random, routes);
    RatesInParts parts(
        system, [](const SharingSystem::Folded& left, std::vector<RouteRate>& part) { ask_simgrid(left, part); });
    std::map<RouteIndex, RouteRate> known;
    for (int change = 0; change < 100; ++change) {
      std::set<RouteIndex> changed;
      for (int i = below(random, 6); i >= 0; --i) changed.insert(below(random, routes));
      for (const RouteIndex route : changed) {
        const int flows = std::max(below(random, 5) - 1, 0);
        parts.change(route, flows);
        known.erase(route);
      }
      const std::vector<RouteRate>& part = parts.settle();
      settled += part.size();
      for (const RouteRate& rate : part) known[rate.route] = rate;
      std::vector<RouteRate> whole;
      for (const auto& [route, rate] : known) whole.push_back(rate);
      moving += whole.size();
      ask_simgrid(system, whole);
      for (const RouteRate& rate : whole) {
        REQUIRE(known[rate.route].rate.value() == Approx(rate.rate.value()).epsilon(1e-9));
      }
    }
  }
  CHECK(settled < moving / 2);
}

TEST_CASE("Flows end at the same dates whether links are shared in parts or by components") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const SharingSystem::Folded system = random_links(random, 100);
    Platform whole(system), parts(system, 0);
    Seconds now(0.0);
    for (std::int32_t started = 0; is_finite(now);) {
      for (int i = below(random, 8); i >= 0 && started < 400; --i, ++started) {
        const RouteIndex route = below(random, 100);
        const Bytes bytes(1e6 * (1 + below(random, 5000)));
        for (Platform* platform : {&whole, &parts}) platform->start(route, bytes, started, now);
      }
      for (Platform* platform : {&whole, &parts}) platform->share_links();
      REQUIRE(is_finite(parts.first_end()) == is_finite(whole.first_end()));
      now = whole.first_end();
      if (!is_finite(now)) break;
      REQUIRE(parts.first_end().value() == Approx(now.value()).epsilon(1e-9));
      std::vector<std::int32_t> ended = whole.end_flows(now), also = parts.end_flows(now);
      std::ranges::sort(ended);
      std::ranges::sort(also);
      REQUIRE(ended == also);
    }
  }
}

TEST_CASE("SimGrid shares links exactly") { CHECK_NOTHROW(check_link_sharing()); }
