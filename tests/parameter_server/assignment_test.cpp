#include "model/parameter_server/store.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

std::vector<double> loads(const std::vector<KeyPiece>& pieces, const std::vector<int>& servers, int count) {
  std::vector<double> load(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < pieces.size(); ++i) load[static_cast<std::size_t>(servers[i])] += pieces[i].parameters;
  return load;
}

}  // namespace

TEST_CASE("keys above the split are cut into equal pieces, others are not") {
  // fp32: 2 million numbers are 8 MB: two pieces of 4 MB; one number more makes three. 100 numbers stay whole, and a
  // layer without parameters has no key.
  const auto pieces = cut_keys({2e6, 2e6 + 1, 100.0, 0.0}, 4.0_B, 4.0_MB);
  REQUIRE(pieces.size() == 6);
  CHECK(pieces[0].parameters == 1e6);
  CHECK(pieces[1].piece == 1);
  CHECK(pieces[4].layer == 1);
  CHECK(pieces[4].parameters == Approx((2e6 + 1) / 3));
  CHECK(pieces[5].layer == 2);
  CHECK(pieces[5].parameters == 100.0);
}

TEST_CASE("balanced assignment puts the largest key first onto the least loaded server") {
  // 7, 6, 5, 4, 3 on two servers, largest first: 7 | 6; 5 to the 6 (11); 4 to the 7 (11); 3 to the first of the equal.
  const auto pieces = cut_keys({3.0, 7.0, 5.0, 6.0, 4.0}, 4.0_B, 1.0_MB);
  const auto servers = assign_keys(pieces, 2, Sync::Assignment::balanced);
  CHECK(servers == std::vector<int>{0, 0, 1, 1, 0});
  // 14 against 11, mean 12.5.
  CHECK(load_imbalance(pieces, servers, 2) == Approx(14.0 / 12.5));
}

TEST_CASE("one large key cannot be balanced unless it is cut") {
  // VGG-16's fc6 holds 102.8 of 138.4 million parameters: whole, on four servers, its server has 2.97 times the mean.
  const std::vector<double> layers = {14.7e6, 102.8e6, 16.8e6, 4.1e6};
  const auto whole = cut_keys(layers, 4.0_B, 1.0_GB);
  const auto cut = cut_keys(layers, 4.0_B, 4.0_MB);
  const double total = std::accumulate(layers.begin(), layers.end(), 0.0);
  CHECK(load_imbalance(whole, assign_keys(whole, 4, Sync::Assignment::balanced), 4) == Approx(4 * 102.8e6 / total));
  CHECK(load_imbalance(cut, assign_keys(cut, 4, Sync::Assignment::balanced), 4) < 1.02);
}

TEST_CASE("no assignment loses a key, and none is better balanced than the greedy bound allows") {
  for (const auto assignment : {Sync::Assignment::balanced, Sync::Assignment::hashed}) {
    for (int servers = 1; servers <= 16; ++servers) {
      std::vector<double> layers;
      for (int i = 0; i < 50; ++i) layers.push_back(1e5 * (1 + (i * 37) % 23));
      const auto pieces = cut_keys(layers, 4.0_B, 4.0_MB);
      const auto placed = assign_keys(pieces, servers, assignment);
      const auto load = loads(pieces, placed, servers);
      const double total = std::accumulate(layers.begin(), layers.end(), 0.0);
      CHECK(std::accumulate(load.begin(), load.end(), 0.0) == Approx(total));
      const double imbalance = load_imbalance(pieces, placed, servers);
      CHECK(imbalance >= 1.0 - 1e-12);
      // Graham: at most 4/3 of the best, which is no more than the mean and the largest piece.
      if (assignment == Sync::Assignment::balanced) CHECK(imbalance <= 4.0 / 3.0 * (1.0 + 1e6 / (total / servers)));
      CHECK(placed == assign_keys(pieces, servers, assignment));
    }
  }
}
