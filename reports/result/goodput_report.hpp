// What failures leave of a training's time, what it takes in the end, and how unequal devices share it.
#pragma once

#include <string>

#include "model/result.hpp"

namespace foretrain {

/// Sections of a prediction's text; empty where nothing was asked.
std::string goodput_section(const TrainResult& train);
std::string bill_section(const TrainResult& train);
std::string split_section(const TrainResult& train);

}  // namespace foretrain
