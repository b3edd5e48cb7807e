// Draws of routes as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "model/result.hpp"

namespace foretrain {

inline nlohmann::ordered_json routing_json(const RoutingSpread& routing) {
  return {{"rule", routing.rule},
          {"draws", routing.draws},
          {"p50_s", routing.p50.value()},
          {"p90_s", routing.p90.value()},
          {"p99_s", routing.p99.value()}};
}

inline RoutingSpread routing_from(const nlohmann::ordered_json& json) {
  const auto time = [&](const char* key) { return Seconds(json.at(key).get<double>()); };
  return {json.at("rule").get<std::string>(), json.at("draws").get<int>(), time("p50_s"), time("p90_s"), time("p99_s")};
}

}  // namespace foretrain
