// Results for people: the answer first, then where it comes from.
#pragma once

#include <string>
#include <string_view>

#include "model/result.hpp"

namespace foretrain {

struct TextOptions {
  bool verbose = false;  ///< list every constant with its source
};

/// One prediction as a page of text, ending in a line end.
std::string to_text(const Result& result, const TextOptions& options = {});

/// "GPT-2 XL (flows: simulated contention)", with text around it.
std::string title_of(const Result& result, std::string_view begin = "", std::string_view end = "");

/// " (90 % interval 40.1–47.9 s)" where the result states one.
std::string interval_of(const Result& result);

/// "(90 % interval 683–968 ms)"; the lower end loses its unit where it is the upper's.
std::string interval(const std::string& low, const std::string& high);

/// "77.9 of 85.9 GB = 80 GiB": GiB where they are whole.
std::string of_capacity(Bytes used, Bytes capacity);

/// "29.7 days for 300 B tokens (90 % interval 25.9–38.9 days)", "1.46 M USD (90 % interval …)", of a training whose
/// length, and price, is stated.
std::string length_text(const TrainResult& train, const std::string& length = "");
std::string cost_text(const TrainResult& train);

/// Goodput and energy, a line each, for first screens.
std::string whole_training_lines(const TrainResult& train);

/// Sections of a prediction's text; empty where nothing was asked.
std::string goodput_section(const TrainResult& train);
std::string bill_section(const TrainResult& train);
std::string split_section(const TrainResult& train);

/// The model and the resolved settings, one line per part; details only when `verbose`.
std::string settings_section(const Result& result, bool verbose);

/// Name of a setting by itself: "gradient sync algorithm", "weight format", "tensor".
std::string label_of(const Setting& setting);
bool is_whole_number(const std::string& text);

/// First screens leave out what takes less of a step.
inline constexpr double least_share = 0.0005;

/// "gradient all-reduce"; those inside layers by their ranks: "expert, tensor collectives".
std::string label_of_collective(const TrainResult& train, const std::string& collective);

/// Collectives by their time; `verbose` adds hidden times and the collectives inside layers one by one. Empty where
/// nothing is sent.
std::string communication_section(const TrainResult& train, bool verbose);

/// Empty without parameter servers.
std::string server_section(const TrainResult& train, bool verbose);

}  // namespace foretrain
