#include "validate/measure/record.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "model/base/statistics.hpp"

namespace foretrain {

namespace {

const char* word_of(RecordStatus status) {
  switch (status) {
    case RecordStatus::measured:
      return "measured";
    case RecordStatus::failed:
      return "failed";
    case RecordStatus::skipped:
      return "skipped";
  }
  return "";
}

template <typename List, typename Text>
std::string joined(const List& list, char open, char close, Text text) {
  std::string out(1, open);
  for (const auto& item : list) {
    if (out.size() > 1) out += ',';
    out += text(item);
  }
  return out + close;
}

std::string object_of(const std::map<std::string, std::string>& fields) {
  return joined(fields, '{', '}',
                [](const auto& field) { return json_quoted(field.first) + ":" + json_quoted(field.second); });
}

std::string state_text(const DeviceState& state) {
  return "{\"sm_mhz\":" + json_number(state.sm_mhz) + ",\"memory_mhz\":" + json_number(state.memory_mhz) +
         ",\"power_w\":" + json_number(state.power_w) + ",\"temperature_c\":" + json_number(state.temperature_c) +
         ",\"throttle\":" + joined(state.throttle, '[', ']', json_quoted) + "}";
}

/// What is computed from the values stands beside them, for readers that do not compute.
std::string summary_of(const std::vector<double>& values) {
  const double middle = median(values);
  const double spread = middle == 0.0 ? 0.0 : (quantile(values, 0.75) - quantile(values, 0.25)) / middle;
  return ",\"median\":" + json_number(middle) + ",\"spread\":" + json_number(spread) +
         ",\"best\":" + json_number(*std::min_element(values.begin(), values.end())) +
         ",\"outliers\":" + std::to_string(outliers(values));
}

}  // namespace

int outliers(const std::vector<double>& values) {
  if (values.size() < 3) return 0;
  const double middle = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  const double limit = 3.0 * 1.4826 * median(distances);
  return static_cast<int>(
      std::count_if(distances.begin(), distances.end(), [&](double distance) { return distance > limit; }));
}

std::string json_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr const char* digits = "0123456789abcdef";
      out += std::string("\\u00") + digits[(c >> 4) & 15] + digits[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string json_text_field(const std::string& line, const std::string& name) {
  const std::string head = json_quoted(name) + ":\"";
  std::size_t at = line.find(head);
  std::string out;
  if (at == std::string::npos) return out;
  for (at += head.size(); at < line.size() && line[at] != '"'; ++at) {
    if (line[at] != '\\' || at + 1 == line.size()) {
      out += line[at];
    } else if (line[++at] == 'u' && at + 4 < line.size()) {
      out += static_cast<char>(std::stoi(line.substr(at + 1, 4), nullptr, 16));
      at += 4;
    } else {
      out += line[at];
    }
  }
  return out;
}

std::string json_number(double value) {
  if (!std::isfinite(value)) throw std::invalid_argument("a measurement is not a finite number");
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return {text, end};
}

std::string to_json_line(const Record& record) {
  if (record.status == RecordStatus::measured && record.values.empty()) {
    throw std::invalid_argument(record.name + ": measured, but without a value");
  }
  std::string out = "{\"suite\":" + json_quoted(record.suite) + ",\"name\":" + json_quoted(record.name) +
                    ",\"status\":\"" + word_of(record.status) + "\",\"scenario\":" + object_of(record.scenario) +
                    ",\"parameters\":" + object_of(record.parameters) + ",\"device\":" + std::to_string(record.device) +
                    ",\"unit\":" + json_quoted(record.unit) +
                    ",\"values\":" + joined(record.values, '[', ']', json_number);
  if (!record.values.empty()) out += summary_of(record.values);
  if (record.state) out += ",\"state\":" + state_text(*record.state);
  return out + ",\"note\":" + json_quoted(record.note) + "}\n";
}

}  // namespace foretrain
