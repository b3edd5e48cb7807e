// Flows in progress, and how SimGrid shares links among them, beside what max–min fairness says.
#include "sim/platform.hpp"

#include "model/base/number.hpp"
#include "model/collectives/flow_classes.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

using Random = std::mt19937;

int below(Random& random, int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); }

/// 24 routes over one to four of twelve links, of which some are crossed twice.
RoutedLinks random_links(Random& random) {
  RoutedLinks system;
  for (int link = 0; link < 12; ++link) system.links.push_back(BytesPerSecond(1e9 * (1 + below(random, 50))));
  for (int route = 0; route < 24; ++route) {
    std::vector<std::int32_t>& crossed = system.routes.emplace_back();
    for (int i = below(random, 4); i >= 0; --i) crossed.push_back(below(random, 12));
    system.weights.push_back(1 + below(random, 8));
  }
  return system;
}

/// The same for max_min_rates(): so many flows of a route are one of as many times the weight.
SharingSystem::Folded fair_system(const RoutedLinks& links, const std::vector<int>& flows) {
  SharingSystem::Folded system{links.links, {}, {}, links.weights};
  for (std::size_t route = 0; route < flows.size(); ++route) {
    system.weight[route] *= std::max(flows[route], 1);
    for (const std::int32_t link : links.routes[route]) {
      if (system.crossings.size() == route) system.crossings.emplace_back();
      const auto known = std::ranges::find(system.crossings[route], link, &SharingSystem::Folded::Crossing::link);
      if (known == system.crossings[route].end()) {
        system.crossings[route].push_back({link, 1});
      } else {
        ++known->flows;
      }
    }
  }
  return system;
}

/// The rate of a flow of each route by definition; none where nothing moves.
std::vector<BytesPerSecond> fair_rates(const RoutedLinks& links, const std::vector<int>& flows) {
  std::vector<bool> moving;
  for (const int n : flows) moving.push_back(n > 0);
  std::vector<BytesPerSecond> rates = max_min_rates(fair_system(links, flows), moving);
  for (std::size_t route = 0; route < flows.size(); ++route) rates[route] /= std::max(flows[route], 1);
  return rates;
}

/// Rates of all routes as flows come and go, after each change. Throws where they are not the fair ones.
std::vector<BytesPerSecond> share_as_flows_come_and_go(unsigned seed) {
  Random random(seed);
  const RoutedLinks links = random_links(random);
  const std::unique_ptr<LinkSharing> sharing = LinkSharing::make(links);
  std::vector<int> flows(links.routes.size());
  std::vector<BytesPerSecond> all;
  for (int change = 0; change < 100; ++change) {
    for (int i = below(random, 6); i >= 0; --i) {
      const auto route = static_cast<RouteIndex>(below(random, 24));
      sharing->set_flows(route, flows[at_index(route)] = std::max(below(random, 5) - 1, 0));
    }
    sharing->share();
    const std::vector<BytesPerSecond> fair = fair_rates(links, flows);
    for (std::size_t route = 0; route < flows.size(); ++route) {
      if (flows[route] == 0) continue;
      all.push_back(sharing->rate(static_cast<RouteIndex>(route)));
      const double off = all.back() / fair[route] - 1.0;
      if (std::abs(off) > 1e-6) throw std::runtime_error("SimGrid's rates are not the fair ones");
    }
  }
  return all;
}

/// Two flows on each of so many links have half of it.
void share_in_pairs(int links) {
  RoutedLinks plan;
  for (int link = 0; link < links; ++link) {
    plan.links.push_back(10.0_GBps);
    plan.routes.insert(plan.routes.end(), 2, {link});
  }
  const std::unique_ptr<LinkSharing> sharing = LinkSharing::make(plan);
  for (RouteIndex route = 0; route < 2 * links; ++route) sharing->set_flows(route, 1);
  sharing->share();
  for (RouteIndex route = 0; route < 2 * links; ++route) REQUIRE(sharing->rate(route) == 5.0_GBps);
}

}  // namespace

TEST_CASE("SimGrid shares links fairly, with the same bits whatever has begun and ended before") {
  std::vector<std::vector<BytesPerSecond>> first;
  for (unsigned seed = 0; seed < 50; ++seed) first.push_back(share_as_flows_come_and_go(seed));
  for (unsigned seed = 50; seed-- > 0;) CHECK(share_as_flows_come_and_go(seed) == first[seed]);
  share_in_pairs(20'000);  // so many communications are not kept
  for (unsigned seed = 0; seed < 50; ++seed) CHECK(share_as_flows_come_and_go(seed) == first[seed]);
}

TEST_CASE("Two simulations do not share links at a time") {
  const RoutedLinks links{{10.0_GBps}, {{0}}};
  const std::unique_ptr<LinkSharing> sharing = LinkSharing::make(links);
  CHECK_THROWS_AS(LinkSharing::make(links), std::logic_error);
}

TEST_CASE("SimGrid shares links exactly") { CHECK_NOTHROW(check_platform()); }

TEST_CASE("what has moved together before moves as it did") {
  // One link of 10 GB/s: a flow of 10 MB beside one of 20 MB ends when both have moved 10 MB, after 2 ms; the other
  // needs 1 ms more. Then nothing moves for 1 ms, and the same begins again, three times.
  const RoutedLinks links{{10.0_GBps}, {{0}, {0}}};
  std::vector<Seconds> ends;
  Platform platform(links);
  platform.set_alarm(Seconds(0.0));
  platform.run([&] {
    for (std::size_t n = platform.take_finished().size(); n > 0; --n) ends.push_back(platform.now());
    if (platform.flows_in_progress() > 0) return;
    const Seconds next = 4.0_ms * number(ends.size() / 2);
    if (ends.size() == 6) return;
    if (platform.now() < next) return platform.set_alarm(next);
    platform.start(0, 10.0_MB);
    platform.start(1, 20.0_MB);
  });
  for (std::size_t round = 0; round < 3; ++round) {
    CHECK((ends[2 * round] - 4.0_ms * number(round)).value() == Approx(2e-3));
    CHECK((ends[2 * round + 1] - 4.0_ms * number(round)).value() == Approx(3e-3));
  }
}

TEST_CASE("several flows of one route share it, and leave it one by one") {
  // 10 GB/s: 10 MB and 30 MB on the same route. Both move 10 MB in 2 ms; 20 MB are left, 2 ms more.
  std::vector<Seconds> ends(2);
  const RoutedLinks links{{10.0_GBps}, {{0}}};
  Platform platform(links);
  platform.set_alarm(Seconds(0.0));
  platform.run([&, begun = false]() mutable {
    for (const Platform::FlowId flow : platform.take_finished()) ends[at_index(flow)] = platform.now();
    if (std::exchange(begun, true)) return;
    platform.start(0, 10.0_MB);
    platform.start(0, 30.0_MB);
  });
  CHECK(ends[0].value() == Approx(2e-3));
  CHECK(ends[1].value() == Approx(4e-3));
}
