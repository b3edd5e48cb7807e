#include "reports/studies/server_map.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

constexpr const char* header =
    "workload.collective.algorithm,workload.collective.servers,workload.collective.placement,"
    "workload.collective.ranks,cluster.network.nic_bandwidth,workload.collective.size,predicted.time,predicted.error\n";

CsvTable table(const std::string& rows) { return parse_csv(header + rows, "sweep.csv"); }

/// Two speeds, out of order, and two sizes. The ring takes 10 s everywhere; one server 20 s, four 8 s, those on the
/// workers' machines 9.8 s; a tree 5 s.
CsvTable small_sweep() {
  std::string rows;
  for (const char* cell : {"8,100 Gbit/s,10 MB", "8,100 Gbit/s,1 GB", "8,10 Gbit/s,10 MB", "8,10 Gbit/s,1 GB"}) {
    rows += std::string("ring,,,") + cell + ",10 s,\n" + "double_tree,,," + cell + ",5 s,\n" +
            "parameter_server,1,dedicated," + cell + ",20 s,\n" + "parameter_server,4,dedicated," + cell + ",8 s,\n" +
            "parameter_server,4,colocated," + cell + ",9.8 s,\n";
  }
  return table(rows);
}

}  // namespace

TEST_CASE("A map takes the best of each way in each cell, axes in order of size") {
  const MapFigure figure = map_figure({small_sweep()}, {});
  CHECK(figure.predictions == 20);
  CHECK(figure.x.labels == std::vector<std::string>{"10", "100"});
  CHECK(figure.x.title == "network speed (Gbit/s)");
  CHECK(figure.y.labels == std::vector<std::string>{"10 MB", "1 GB"});  // two units: they stay with the numbers
  REQUIRE(figure.panels.size() == 1);
  REQUIRE(figure.panels[0].cells.size() == 4);
  const MapCell& cell = figure.panels[0].at(1, 1, 2);
  CHECK((cell == MapCell{Seconds(20.0), Seconds(8.0), Seconds(9.8), Seconds(10.0), Seconds(5.0)}));
  const std::vector<MapBand> bands = figure.bands();
  REQUIRE(bands.size() == 4);
  CHECK(bands[0].ratio(cell).value() == Approx(2.0));
  CHECK(bands[1].ratio(cell).value() == Approx(0.8));
  CHECK(bands[2].ratio(cell).value() == Approx(0.98));
  CHECK(bands[3].ratio(cell).value() == Approx(1.6));
}

TEST_CASE("Without other algorithms a map compares with the ring alone") {
  const MapFigure figure = map_figure({table("ring,,,8,10 Gbit/s,1 MB,1 s,\n"
                                             "parameter_server,1,dedicated,8,10 Gbit/s,1 MB,2 s,\n")},
                                      {});
  REQUIRE(figure.bands().size() == 1);
  CHECK(figure.bands()[0].title == "One dedicated server against a ring");
}

TEST_CASE("Rows without a prediction are counted and leave their cell empty") {
  const MapFigure figure = map_figure({table("ring,,,8,10 Gbit/s,1 MB,1 s,\nring,,,8,10 Gbit/s,2 MB,,too large\n"
                                             "parameter_server,1,dedicated,8,10 Gbit/s,1 MB,2 s,\n"
                                             "parameter_server,1,dedicated,8,10 Gbit/s,2 MB,4 s,\n")},
                                      {});
  CHECK(figure.failed == 1);
  CHECK_FALSE(figure.bands()[0].ratio(figure.panels[0].at(0, 1, 1)).has_value());
}

TEST_CASE("A table that is no map says what is missing") {
  const CsvTable rings = table("ring,,,8,10 Gbit/s,1 MB,1 s,\n");
  CHECK_THROWS_WITH(map_figure({rings}, {}), Catch::Contains("parameter_server; sweep it too"));
  CHECK_THROWS_WITH(map_figure({table("parameter_server,1,dedicated,8,10 Gbit/s,1 MB,1 s,\n")}, {}),
                    Catch::Contains("ring, which the servers are compared with"));
  CHECK_THROWS_WITH(map_figure({rings}, {"cluster.nodes", "", ""}),
                    Catch::Contains("sweep.csv: there is no column cluster.nodes") && Catch::Contains("--x"));
}

TEST_CASE("A map of trainings has the keys that are named, and its text the ratio in each cell") {
  const CsvTable sweep = parse_csv(
      "cluster.nodes,plan.data,plan.sync.algorithm,plan.sync.servers,plan.sync.placement,predicted.time_s\n"
      "2,4,ring,,,1\n2,4,parameter_server,1,dedicated,2\n3,6,ring,,,4\n3,6,parameter_server,1,dedicated,2\n",
      "sweep.csv");
  const MapFigure figure = map_figure({sweep}, {"cluster.nodes", "plan.data", ""});
  CHECK(figure.x.labels == std::vector<std::string>{"2", "3"});
  REQUIRE(figure.panels.size() == 1);
  CHECK_THAT(to_text(figure), Catch::Contains("One dedicated server against a ring: time") && Catch::Contains(" 0.5"));
}

}  // namespace foretrain::test
