// Goodput, length and cost of a training, and the batch split over unequal devices, as text.
#pragma once

#include <string>

#include "model/result.hpp"

namespace foretrain {

/// "(90 % interval 683–968 ms)"; the lower end loses its unit where it is the upper's.
std::string interval(const std::string& low, const std::string& high);

/// "77.9 of 85.9 GB".
std::string of_capacity(Bytes used, Bytes capacity);

/// "29.7 days (90 % interval 25.9–38.9 days)", "1.46 M USD (90 % interval …)", of a training whose length, and price,
/// is stated.
std::string length_text(const TrainResult& train);
std::string cost_text(const TrainResult& train);

/// Goodput and energy, a line each, for first screens.
std::string whole_training_lines(const TrainResult& train);

/// Sections of a prediction's text; empty where nothing was asked.
std::string goodput_section(const TrainResult& train);
std::string bill_section(const TrainResult& train);
std::string split_section(const TrainResult& train);

}  // namespace foretrain
