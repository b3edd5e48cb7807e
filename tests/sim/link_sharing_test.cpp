// SimGrid's sharing of links among flows, against max–min fairness.
#include "sim/link_sharing.hpp"

#include "model/base/number.hpp"
#include "sim/platform.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

using Random = std::mt19937;

int below(Random& random, int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); }

/// 24 routes over one to four of twelve links, of which some are crossed twice.
SharingSystem::Folded random_links(Random& random) {
  SharingSystem system;
  for (int link = 0; link < 12; ++link) system.bandwidth.push_back(BytesPerSecond(1e9 * (1 + below(random, 50))));
  for (int route = 0; route < 24; ++route) {
    std::vector<std::int32_t> crossed;
    for (int i = below(random, 4); i >= 0; --i) crossed.push_back(below(random, 12));
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
  std::vector<BytesPerSecond> rates = max_min_rates(system, moving);
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

TEST_CASE("SimGrid shares links exactly") { CHECK_NOTHROW(check_link_sharing()); }
