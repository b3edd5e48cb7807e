// Which measurements are points of a fit, and what they are compared with.
#include "validate/fit/points.hpp"

#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"
#include "validate/fit/describe.hpp"

using namespace foretrain;

namespace {

using Cells = std::map<std::string, std::string>;

/// A record of a millisecond on a machine of two GPUs.
Record millisecond(const std::string& suite, Cells scenario, Cells parameters) {
  Record record = synthetic::record(suite, "point", std::move(scenario));
  record.parameters = std::move(parameters);
  record.values = {1e-3};
  return record;
}

struct Found {
  std::vector<std::string> groups, not_understood;
  std::vector<double> measured;
  std::vector<std::string> caches;
};

Found found_in(const Record& record) {
  RawMeasurements raw;
  raw.machine = read_machine_text(synthetic::machine_json(2, 4), "machine.json");
  raw.points = {{record, {"some.jsonl", 1, 1}}};
  const PredictedPoints points = predicted_points(raw, node_document(raw.machine, {}));
  Found found{{}, points.not_understood, {}, {}};
  for (const PredictedPoint& point : points.points) {
    found.groups.push_back(point.group);
    found.measured.push_back(point.measured.value());
    found.caches.push_back(point.cache);
  }
  CHECK(points.left_out.size() == points.not_understood.size());
  return found;
}

/// The same with one cell of another value, as each pair says it.
void check_each_decides(const std::string& suite, const Cells& parameters, const Cells& others) {
  for (const auto& [key, value] : others) {
    INFO(key << " = " << value);
    Cells changed = parameters;
    changed[key] = value;
    const Found found = found_in(millisecond(suite, {}, changed));
    CHECK(found.groups.empty());
    CHECK(found.not_understood.empty());  // unused
  }
}

const Cells collective = {{"workload.collective.operation", "all_reduce"},
                          {"workload.collective.size", "1 MB"},
                          {"workload.collective.ranks", "4"}};

}  // namespace

TEST_CASE("Of copies between host and device those of pinned memory, timed in a stream, one way, are points") {
  const Cells copy = {{"what", "host_copy"},
                      {"memory", "pinned"},
                      {"timing", "stream"},
                      {"direction", "to_device"},
                      {"bytes", "1000000"}};
  CHECK(found_in(millisecond("copy", {}, copy)).groups == std::vector<std::string>{"copy to_device"});
  Cells back = copy;
  back["direction"] = "to_host";
  CHECK(found_in(millisecond("copy", {}, back)).groups == std::vector<std::string>{"copy to_host"});
  check_each_decides("copy", copy,
                     {{"what", "other"}, {"memory", "pageable"}, {"timing", "host"}, {"direction", "both"}});
}

TEST_CASE("Of copies between GPUs those of one direction with direct access are points") {
  const Cells copy = {{"timing", "stream"}, {"direction", "one"}, {"peer_access", "on"},
                      {"source", "0"},      {"destination", "1"}, {"bytes", "1000000"}};
  CHECK(found_in(millisecond("peer", {}, copy)).groups == std::vector<std::string>{"copy between GPUs"});
  check_each_decides("peer", copy, {{"timing", "host"}, {"direction", "both"}, {"peer_access", "off"}});
  CHECK(found_in(millisecond("copy", {}, copy)).groups.empty());
}

TEST_CASE("Collectives of several machines are a group of their own, where their ranks are spread evenly") {
  const auto groups = [](const char* nodes, const char* each) {
    return found_in(millisecond("collective", collective, {{"nodes", nodes}, {"gpus_per_node", each}}));
  };
  CHECK(groups("2", "2").groups == std::vector<std::string>{"all_reduce, 4 GPUs of 2 nodes"});
  CHECK(groups("4", "1").groups == std::vector<std::string>{"all_reduce, 4 GPUs of 4 nodes"});
  const Found uneven = groups("3", "2");
  CHECK(uneven.groups.empty());
  REQUIRE(uneven.not_understood.size() == 1);
  CHECK_THAT(uneven.not_understood[0],
             Catch::Contains("some.jsonl:1") && Catch::Contains("not spread evenly over the machines"));
  // On one machine nothing is said of how many there are.
  Cells two = collective;
  two["workload.collective.ranks"] = "2";
  CHECK(found_in(millisecond("collective", two, {})).groups == std::vector<std::string>{"all_reduce, 2 GPUs"});
}

TEST_CASE("A rate counts as its time, other units not at all, and operands out of the L2 as a point more") {
  const Cells product = {{"workload.operator.kind", "matmul"},
                         {"workload.operator.m", "512"},
                         {"workload.operator.n", "512"},
                         {"workload.operator.k", "512"},
                         {"workload.operator.precision", "bf16"}};
  Record record = millisecond("gemm", product, {});
  CHECK(found_in(record).groups == std::vector<std::string>{"matmul bf16"});
  record.unit = "1/s";
  record.values = {250.0};
  CHECK(found_in(record).measured == std::vector<double>{1.0 / 250.0});
  record.unit = "B/s";
  CHECK(found_in(record).groups.empty());
  record = millisecond("gemm", product, {{"flushed_s", "0.002"}, {"cache", "warm"}, {"sustained", "true"}});
  const Found both = found_in(record);
  CHECK(both.groups == std::vector<std::string>{"matmul bf16 sustained", "matmul bf16 sustained"});
  CHECK(both.measured == std::vector<double>{1e-3, 2e-3});
  CHECK(both.caches == std::vector<std::string>{"warm", "cold"});
  record.parameters["flushed_s"] = "0";
  CHECK(found_in(record).measured == std::vector<double>{1e-3});
  record.suite = "overlap";  // slowed by what runs beside it
  CHECK(found_in(record).groups.empty());
}

TEST_CASE("Kernels of replayed steps count from twenty microseconds on") {
  const Cells traffic = {{"workload.operator.kind", "traffic"},
                         {"workload.operator.pattern", "elementwise"},
                         {"workload.operator.read", "1000000"},
                         {"workload.operator.written", "1000000"},
                         {"workload.operator.precision", "fp32"}};
  Record record = millisecond("replay", traffic, {});
  record.values = {20e-6};
  CHECK(found_in(record).groups == std::vector<std::string>{"traffic in replayed steps"});
  record.values = {19.9e-6};
  CHECK(found_in(record).groups.empty());
  record.values = {20e-6};
  record.scenario["workload.operator.pattern"] = "zigzag";
  CHECK_THAT(found_in(record).not_understood.at(0), Catch::Contains("unknown pattern: zigzag"));
}
