// The use of links in words, JSON and a picture, of links that are stated.
#include <nlohmann/json.hpp>

#include "model/base/error.hpp"
#include "reports/explain/link_use.hpp"
#include "tests/catch.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {
namespace {

LinkUse used_link(const char* name, double most, double mean, int links = 1) {
  return {.name = name,
          .bandwidth = BytesPerSecond(1e9),
          .links = links,
          .busiest = Bytes(most * 1e9 * 2.0),
          .mean = mean,
          .most = most,
          .in_use = Seconds(2.0 * most),
          .slices = {most, most}};
}

LinkUses of_two_seconds(std::vector<LinkUse> links) { return {std::move(links), 1, Seconds(2.0)}; }

/// Links "a", "b", …, all half used.
LinkUses of_many(int number) {
  LinkUses uses = of_two_seconds({});
  for (int i = 0; i < number; ++i) {
    uses.links.push_back(used_link(std::string(1, static_cast<char>('a' + i)).c_str(), 0.5, 0.5));
  }
  return uses;
}

}  // namespace

TEST_CASE("Links alike are one row, by the name of the busiest where one is much busier than all", "[golden]") {
  LinkUse switched = used_link("gpu1>switch0", 0.5, 0.1, 3);
  LinkUse card = used_link("nic1>fabric", 0.25, 0.25);
  card.in_use = Seconds(1.0);
  card.users = {{"b", Bytes(0.495e9)}, {"c", Bytes(0.0045e9)}};
  LinkUses uses =
      of_two_seconds({used_link("gpu0>switch0", 0.5, 0.5), switched, used_link("cpu0>cpu1", 0.0009, 0.0),
                      used_link("nic0>fabric", 0.24, 0.24), card, used_link("x0", 0.02, 0.0),
                      used_link("x1", 0.01, 0.0), used_link("y0", 0.125, 0.09, 2), used_link("z", 0.001, 0.001)});
  uses.links[0].users = {{"a", Bytes(0.75e9)}, {"b", Bytes(0.24e9)}, {"c", Bytes(0.01e9)}};
  uses.links[7].in_use = Seconds(0.0);
  check_whole("links-alike-one-row-name.txt", to_text(uses));
  // Of 1 and 3 links: (0.5 + 3 · 0.1) / 4.
  const auto json = nlohmann::json::parse(to_json(uses));
  REQUIRE(json["links"].size() == 5);
  CHECK(json["links"][0]["links"] == 4);
  CHECK(json["links"][0]["mean_share"] == Approx(0.2));
  CHECK(json["links"][0]["in_use_share"] == 0.5);
  CHECK(json["links"][1]["name"] == "nic1>fabric");
  CHECK(json["links"][1]["mean_share"] == 0.245);
  CHECK(json["links"][1]["in_use_share"] == 0.5);
  CHECK(json["links"][1]["users"][1]["bytes"] == 0.0045e9);
}

TEST_CASE("Fourteen rows of links are reported, and how many are not") {
  CHECK_THAT(to_text(of_many(14)), Catch::Contains("\n  n  ") && !Catch::Contains("less utilised"));
  CHECK_THAT(to_text(of_many(17)),
             Catch::Contains("\n  n  ") && !Catch::Contains("\n  o  ") && Catch::Contains("\n  and 3 less utilised\n"));
  CHECK(to_text(of_two_seconds({})) == "Link utilisation over 2.00 s, busiest first\n  no traffic\n");
}

TEST_CASE("Ten waits are reported, of those that take a thousandth of the time") {
  LinkUses uses = of_two_seconds({used_link("a", 0.5, 0.5)});
  const auto waits_in = [&] {
    const std::string text = to_text(uses);
    const std::size_t at = text.find("\nStragglers");
    return at == std::string::npos ? "" : text.substr(at);
  };
  uses.waits = {{"late", "idle", Seconds(0.00199)}};
  CHECK(waits_in() == "");
  uses.waits = {{"late", "idle", Seconds(0.5)}, {"slow", "idle", Seconds(0.002)}, {"x", "y", Seconds(0.00199)}};
  CHECK(waits_in() == R"(
Stragglers
  late ranks  waiting ranks     time  share of step
  ─────────────────────────────────────────────────
  late        idle            500 ms         25.0 %
  slow        idle           2.00 ms          0.1 %
)");
  uses.waits.assign(11, {"late", "idle", Seconds(0.5)});
  const std::string many = waits_in();
  CHECK(std::ranges::count(many, '\n') == 14);  // an empty line, a title, a head and its rule, ten rows
}

TEST_CASE("Links over the time are rows of boxes, darker the more is used, that go on while the shade is the same",
          "[golden]") {
  LinkUse busy = used_link("gpu0>switch", 1.0, 1.0), calm = used_link("cpu0>cpu1", 0.1, 0.1);
  busy.slices = {0.8, 1.0, 0.0, 0.75, 0.5, 0.25, 0.1, 0.0999};
  calm.slices = {0.8, 0.001, 0.0009, 0.05};
  check_whole("links-over-time-rows-boxes.txt", figure_words(to_figure(of_two_seconds({calm, busy}))));
  CHECK_THROWS_AS(to_figure(of_two_seconds({used_link("a", 0.0, 0.0)})), UsageError);
  CHECK(to_figure(of_many(20)).panels.front().y.tics.size() == 14);
}

}  // namespace foretrain::test
