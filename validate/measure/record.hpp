// One measured point: what was measured, every repetition, and the state that the device was in. Written as one line of
// JSON, so that an interrupted run loses at most the point at work.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// The device's state during a measurement.
struct DeviceState {
  double sm_mhz = 0.0;
  std::optional<double> power_w;      ///< mean, by its counter of energy; empty where it has none, or for a moment only
  std::vector<std::string> throttle;  ///< reasons for which the clocks were lowered: "power", "thermal", …
};

enum class RecordStatus { measured, failed, skipped };
std::string word_of(RecordStatus status);
/// Nothing for an unknown word.
std::optional<RecordStatus> status_of(const std::string& word);

struct Record {
  std::string suite;
  std::string name;  ///< unique in its suite: by it an interrupted run finds what is done
  /// Dotted scenario keys with texts as a scenario file would state them, so that the model predicts the point with its
  /// ordinary readers; empty for what no scenario can state.
  std::map<std::string, std::string> scenario;
  std::map<std::string, std::string> parameters;  ///< whatever else belongs to the point
  int device = 0;
  std::string unit;            ///< base units: "s", "B/s", "1/s"
  std::vector<double> values;  ///< every repetition, in order
  std::optional<DeviceState> state;
  RecordStatus status = RecordStatus::measured;
  std::string note;  ///< why it failed or was skipped; what is odd about it
};

/// The state as records and replays hold it: a JSON object.
std::string state_text(const DeviceState& state);

/// One line with its end. Throws std::invalid_argument for values that are not finite, or none in a measured record.
std::string to_json_line(const Record& record);

}  // namespace foretrain
