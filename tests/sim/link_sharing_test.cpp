// How SimGrid shares links among flows, beside what max–min fairness says.
#include "sim/link_sharing.hpp"

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

TEST_CASE("SimGrid shares links exactly") { CHECK_NOTHROW(check_link_sharing()); }
