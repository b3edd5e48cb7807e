#include "validate/measure/record.hpp"

#include <stdexcept>

#include "validate/measure/json_object.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

namespace {

constexpr const char* status_words[] = {"measured", "failed", "skipped"};

}  // namespace

std::string word_of(RecordStatus status) { return status_words[static_cast<std::size_t>(status)]; }

std::optional<RecordStatus> status_of(const std::string& word) {
  for (const RecordStatus status : {RecordStatus::measured, RecordStatus::failed, RecordStatus::skipped}) {
    if (word == word_of(status)) return status;
  }
  return std::nullopt;
}

std::string state_text(const DeviceState& state) {
  JsonObject object;
  object.number("sm_mhz", state.sm_mhz).number("power_w", state.power_w);
  return object.texts("throttle", state.throttle).str();
}

std::string to_json_line(const Record& record) {
  if (record.status == RecordStatus::measured && record.values.empty()) {
    throw std::invalid_argument(record.name + ": measured, but without a value");
  }
  JsonObject line;
  line.text("suite", record.suite).text("name", record.name).text("status", word_of(record.status));
  line.texts("scenario", record.scenario).texts("parameters", record.parameters);
  line.number("device", record.device).text("unit", record.unit).numbers("values", record.values);
  if (!record.values.empty()) {  // derived values, for readers that do not compute
    const Sampled sampled{record.values};
    line.number("median", sampled.median()).number("spread", sampled.spread()).number("best", sampled.lowest());
  }
  if (record.state) line.raw("state", state_text(*record.state));
  return line.text("note", record.note).str() + "\n";
}

}  // namespace foretrain
