#include "reports/result/trace.hpp"

#include <zlib.h>

#include <nlohmann/json.hpp>

#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;
using Json = nlohmann::json;


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
