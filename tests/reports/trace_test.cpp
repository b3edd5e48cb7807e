#include "reports/result/trace.hpp"

#include <zlib.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "model/scenario/load/load.hpp"
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
                 Fidelity::estimate, Detail::timeline);
}

}  // namespace

TEST_CASE("a trace shows the diamond of 1F1B: stage s begins s passes late, and ends as much early") {
  const Result result = pipeline();
  const Json trace = Json::parse(to_trace(result.scenario, result.timeline));
  std::map<int, std::vector<Json>> compute;  // by process
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    CHECK(event["ts"].get<double>() >= 0.0);
    CHECK(event["dur"].get<double>() > 0.0);
    const std::string name = event["name"];
    if (name == "forward" || name == "backward") compute[event["pid"]].push_back(event);
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
}

TEST_CASE("the slices of the busiest stage add up to the breakdown") {
  // The last stage is the busiest: it has the loss. Nothing but its own passes runs on its stream, so that their sum is
  // the breakdown's computing, and what the stream has no slice for is bubble and communication that is waited for.
  // What the host does once a step lies before it all.
  const Result result = pipeline();
  const Breakdown& breakdown = result.train()->breakdown;
  Seconds compute, optimizer, end;
  for (const TimelineEntry& entry : result.timeline) {
    end = std::max(end, entry.start + entry.duration);
    if (entry.lane == 3 && entry.category == "compute") compute += entry.duration;
    if (entry.lane == 3 && entry.category == "optimizer") optimizer += entry.duration;
  }
  CHECK(compute.value() == Approx(breakdown.compute.value()));
  CHECK(optimizer.value() == Approx(breakdown.optimizer.value()));
  CHECK((end + breakdown.host_overhead).value() == Approx(result.train()->step_time.value()));
  CHECK((end - compute - optimizer).value() ==
        Approx((breakdown.pipeline_bubble + breakdown.exposed_communication + breakdown.data_stall).value()));
}

TEST_CASE("GPT-3's trace is as the Trace Event Format describes it, and shows 1F1B on eight stages") {
  const Result result = predict(load_scenario("gpt3-175b-1024-a100"), Fidelity::estimate, Detail::timeline);
  const Json trace = Json::parse(to_trace(result.scenario, result.timeline));
  CHECK(trace["displayTimeUnit"] == "ms");
  std::map<std::pair<int, int>, double> busy_until;  // by process and thread
  std::set<std::pair<int, int>> named;
  std::map<int, const Json*> begun;
  std::map<int, int> ends;
  std::map<int, std::string> passes;
  for (const Json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    const std::pair<int, int> thread = {event["pid"], event["tid"]};
    if (phase == "M") {
      CHECK(event["args"].size() == 1);
      if (event["name"] == "thread_name") CHECK(named.insert(thread).second);
      continue;
    }
    CHECK(named.contains(thread));
    CHECK(event["ts"].is_number());
    if (phase == "X") {
      // In microseconds, one behind the other on each thread.
      CHECK(event["dur"].get<double>() > 0.0);
      CHECK(event["ts"].get<double>() >= busy_until[thread] - 0.002);
      busy_until[thread] = event["ts"].get<double>() + event["dur"].get<double>();
      CHECK(event["args"].is_object());
      if (event["name"] == "pipeline send/receive") CHECK(event["args"].value("bytes", 0.0) > 0.0);
      if (event["name"] == "forward") passes[thread.first] += 'F';
      if (event["name"] == "backward") passes[thread.first] += 'B';
    } else if (phase == "s") {
      CHECK(begun.emplace(event["id"].get<int>(), &event).second);
    } else {
      REQUIRE(phase == "f");
      CHECK(event["bp"] == "e");  // bound to the slice that begins there
      ++ends[event["id"]];
      const Json& from = *begun.at(event["id"]);
      CHECK((from["name"] == event["name"] && from["cat"] == event["cat"]));
      CHECK(from["ts"].get<double>() <= event["ts"].get<double>() + 0.002);
    }
  }
  CHECK(ends.size() == begun.size());
  // Stage s of 8 runs 8 − s forward passes before its first backward pass, then one of each in turn.
  REQUIRE(passes.size() == 8);
  for (const auto& [process, order] : passes) {
    const std::size_t first = order.find('B');
    CHECK(first == static_cast<std::size_t>(9 - process));
    CHECK(order.substr(first, 8) == "BFBFBFBF");
  }
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
