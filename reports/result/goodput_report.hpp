// What failures leave of a training's time, what it takes in the end, and how unequal devices share it.
#pragma once

#include <string>

#include "model/result.hpp"

namespace foretrain {

inline std::string likely(const std::string& low, const std::string& high) {
  return "(likely " + low + " to " + high + ")";
}

/// "29.7 days (likely 25.9 days to 38.9 days)", "1.46 M USD (likely …)": of a training whose length, and price, is
/// stated.
std::string length_text(const TrainResult& train);
std::string cost_text(const TrainResult& train);

/// Sections of a prediction's text; empty where nothing was asked.
std::string goodput_section(const TrainResult& train);
std::string bill_section(const TrainResult& train);
std::string split_section(const TrainResult& train);

}  // namespace foretrain
