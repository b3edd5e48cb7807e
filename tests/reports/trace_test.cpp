#include "reports/trace.hpp"

#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>

#include "model/scenario/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;
using Json = nlohmann::json;

namespace {

Result pipeline() {
  return predict(load_scenario_text(R"(
cluster: { node: dgx-a100-80gb, nodes: 4 }
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 4096, heads: 32, vocabulary: 51200, sequence: 1024 }
    global_batch: 64
    micro_batch: 2
plan: { pipeline: 4, data: 8 }
)",
                                    "pipeline.yaml"),
                 Fidelity::estimate, Timeline::fill);
}

}  // namespace

TEST_CASE("a trace shows the diamond of 1F1B: stage s begins s passes late, and ends as much early") {
  const Result result = pipeline();
  const Json trace = Json::parse(to_trace(result.scenario, result.timeline));
  std::map<int, std::vector<Json>> compute;  // by process
  double compute_us = 0.0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    CHECK(event["ts"].get<double>() >= 0.0);
    CHECK(event["dur"].get<double>() > 0.0);
    const std::string name = event["name"];
    if (name == "forward" || name == "backward") compute[event["pid"]].push_back(event);
    if (event["pid"] == 1 && event["cat"] == "compute") compute_us += event["dur"].get<double>();
  }
  REQUIRE(compute.size() == 4);
  for (int stage = 1; stage < 4; ++stage) {
    CHECK(compute[stage + 1].front()["ts"].get<double>() > compute[stage].front()["ts"].get<double>());
  }
  // The first stage runs all four forward passes that its pipeline holds before the first backward pass; the last
  // alternates from the start.
  const auto kinds = [&](int stage) {
    std::string text;
    for (const Json& event : compute[stage]) {
      const char kind = event["name"] == "forward" ? 'F' : 'B';
      if (text.empty() || text.back() != kind || kind == 'F') text += kind;
    }
    return text;
  };
  CHECK(kinds(1) == "FFFFB");
  CHECK(kinds(4).substr(0, 4) == "FBFB");
  // Its slices add up to what the breakdown calls compute.
  CHECK(compute_us * 1e-6 <= result.train->breakdown.compute.value() * 1.001);
}

TEST_CASE("arrows join what was sent with what waited for it") {
  const Result result = pipeline();
  const Json trace = Json::parse(to_trace(result.scenario, result.timeline));
  std::map<int, double> begun;
  int ended = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") begun[event["id"]] = event["ts"];
    if (event["ph"] != "f") continue;
    ++ended;
    REQUIRE(begun.contains(event["id"]));
    CHECK(event["ts"].get<double>() >= begun[event["id"]]);
  }
  CHECK(ended == static_cast<int>(begun.size()));
  // Of 4 stages and 4 micro-batches: 3 · 4 hops each way at least, each with an arrow in and one out.
  CHECK(ended >= 48);
}

TEST_CASE("gzip packs what its reader unpacks, twice the same") {
  const std::string text(100000, 'a');
  const std::string packed = gzip(text);
  CHECK(packed.size() < 1000);
  CHECK(gzip(text) == packed);
  CHECK(packed.substr(4, 4) == std::string(4, '\0'));  // no time stamp
  std::string unpacked(text.size() + 1, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string copy = packed;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(unpacked.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  unpacked.resize(stream.total_out);
  inflateEnd(&stream);
  CHECK(unpacked == text);
}
