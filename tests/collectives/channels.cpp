#include "model/collectives/channels.hpp"

#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/ranks.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

Topology two_nodes(const char* node) {
  const std::string text = std::string("cluster: { node: ") + node +
                           ", nodes: 2 }\nworkload: { collective: { operation: all_reduce, size: 1 GB } }\n";
  return Topology(load_scenario_text(text, "c.yaml", {}).cluster);
}

}  // namespace

TEST_CASE("NCCL's channels: 24 on a node's NVLinks, two or four for each card between nodes, at most 16") {
  const Topology a100 = two_nodes("dgx-a100-80gb"), h100 = two_nodes("dgx-h100"), pcie = two_nodes("gce-k80x8"),
                 mesh = two_nodes("dgx1-p100");
  CHECK(channel_share(iota(8), a100) == 1.0);
  CHECK(channel_share({0, 8}, a100) == 2.0 / 24);        // one card of 25 GB/s: its ring, doubled
  CHECK(channel_share(iota(16), a100) == 16.0 / 24);     // eight cards
  CHECK(channel_share({0, 8}, h100) == 4.0 / 24);        // 50 GB/s: doubled again
  CHECK(channel_share({0, 1, 8, 9}, h100) == 8.0 / 24);  // two cards
  CHECK(channel_share(iota(16), h100) == 16.0 / 24);     // not 32
  CHECK(channel_share(iota(8), mesh) == 1.0);            // 0 and 7 have no NVLink, but a ring through the others has
  CHECK(channel_share({0, 1}, pcie) == 2.0 / 24);
}
