// What failures leave of a training's time, what it takes in the end, and how unequal devices share it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/result.hpp"

namespace foretrain {

/// Sections of a prediction's text; empty where nothing was asked.
std::string goodput_section(const TrainResult& train);
std::string bill_section(const TrainResult& train);
std::string split_section(const TrainResult& train);

/// Objects of a prediction's JSON, and back.
nlohmann::ordered_json goodput_json(const TrainResult::Goodput& goodput);
TrainResult::Goodput goodput_from(const nlohmann::ordered_json& json);
nlohmann::ordered_json bill_json(const TrainResult::Bill& bill);
TrainResult::Bill bill_from(const nlohmann::ordered_json& json);
nlohmann::ordered_json split_json(const TrainResult::Split& split);
TrainResult::Split split_from(const nlohmann::ordered_json& json);

}  // namespace foretrain
