// Accuracy reports as JSON. What is not finite is written as null.
#include <nlohmann/json.hpp>

#include "reports/measured/accuracy.hpp"
#include "validate/learn/learn.hpp"

namespace foretrain {

nlohmann::ordered_json statistics_json(const ErrorStatistics& s) {
  nlohmann::ordered_json json = {
      {"n", s.n}, {"mape", s.mape}, {"median_error", s.median_error}, {"bias", s.bias}, {"worst", s.worst}};
  if (s.coverage) json["coverage"] = *s.coverage;
  return json;
}

namespace {

using AccuracyJson = nlohmann::ordered_json;

AccuracyJson count_json(int n, int right) {
  return {{"n", n}, {"right", right}, {"share", n > 0 ? AccuracyJson(static_cast<double>(right) / n) : AccuracyJson()}};
}

AccuracyJson pairs_json(const PairReport& pairs) {
  AccuracyJson json = count_json(pairs.n, pairs.right);
  json["keys"] = pairs.keys;
  json["apart"] = measured_apart;
  json["close"] = pairs.close;
  json["groups"] = AccuracyJson::object();
  for (const PairGroup& group : pairs.groups) json["groups"][group.name] = count_json(group.n, group.right);
  json["wrong"] = AccuracyJson::array();
  for (const WrongPair& pair : pairs.wrong) {
    json["wrong"].push_back({{"better", pair.better},
                             {"worse", pair.worse},
                             {"group", pair.group},
                             {"quantity", pair.quantity},
                             {"measured", pair.measured},
                             {"predicted", pair.predicted}});
  }
  return json;
}

AccuracyJson anchors_json(const std::map<std::string, Anchor>& anchors) {
  AccuracyJson json = AccuracyJson::object();
  for (const auto& [name, anchor] : anchors) {
    json[name] = {{"runs", anchor.runs}, {"computing", anchor.computing}};
    if (anchor.waits) json[name]["network"] = anchor.network;
    json[name]["spread"] = anchor.spread;
  }
  return json;
}

}  // namespace

std::string to_json(const AccuracyReport& report) {
  AccuracyJson json = {{"groups", AccuracyJson::object()}};
  for (const GroupAccuracy& group : report.groups) {
    json["groups"][group.name] = statistics_json(group.statistics);
    if (report.anchored > 0) json["groups"][group.name]["factor"] = group.factor;
  }
  if (!report.anchors.empty()) json["anchors"] = anchors_json(report.anchors);
  json["overall"] = statistics_json(report.overall);
  if (report.times.n > 0 && report.memory.n > 0) {
    json["times"] = statistics_json(report.times);
    json["memory"] = statistics_json(report.memory);
  }
  json["cases"] = AccuracyJson::array();
  for (const Comparison& c : report.cases) {
    json["cases"].push_back({{"case", c.name},
                             {"group", c.group},
                             {"quantity", c.quantity},
                             {"measured", c.measured},
                             {"predicted", c.predicted},
                             {"error", c.error()}});
    AccuracyJson& json_case = json["cases"].back();
    if (c.covered) json_case["covered"] = *c.covered;
    for (const UncertaintyCause& cause : c.causes) json_case["causes"][cause.constant] = cause.share;
  }
  json["failed"] = AccuracyJson::array();
  for (const FailedCase& failed : report.failed) json["failed"].push_back({{"case", failed.name}, {"why", failed.why}});
  if (report.pairs) json["pairs"] = pairs_json(*report.pairs);
  return json.dump(2);
}

}  // namespace foretrain
