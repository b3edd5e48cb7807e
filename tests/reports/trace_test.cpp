#include "reports/result/trace.hpp"

#include <zlib.h>

#include <nlohmann/json.hpp>

#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;
using Json = nlohmann::json;

TEST_CASE("In GPT-3's trace tasks of a thread follow each other, and each arrow joins two tasks, forwards") {
  const Result result = predict(load_scenario("gpt3-175b-1024-a100"), Fidelity::estimate, Detail::timeline);
  const Json trace = Json::parse(to_trace(result.scenario, result.timeline));
  std::map<std::pair<int, int>, double> busy_until;  // by process and thread, in microseconds
  std::map<int, double> begun;
  std::size_t ended = 0;
  for (const Json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    double& until = busy_until[{event["pid"], event["tid"]}];
    if (phase == "X") {
      CHECK(event["dur"].get<double>() > 0.0);
      CHECK(event["ts"].get<double>() >= until - 0.002);
      until = event["ts"].get<double>() + event["dur"].get<double>();
      if (event["name"] == "pipeline send/receive") CHECK(event["args"].value("bytes", 0.0) > 0.0);
    } else if (phase == "s") {
      CHECK(begun.emplace(event["id"], event["ts"]).second);
    } else if (phase == "f") {
      ++ended;
      CHECK(begun.at(event["id"]) <= event["ts"].get<double>() + 0.002);
    }
  }
  CHECK(begun.size() > 100);
  CHECK(ended == begun.size());
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
