// A JSON object whose fields are written one after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/measure/record.hpp"

namespace foretrain {

/// Fields keep their order. What is not known (an empty optional) is not written.
class JsonObject {
 public:
  JsonObject& text(const std::string& name, const std::string& value) { return raw(name, json_quoted(value)); }
  JsonObject& number(const std::string& name, double value) { return raw(name, json_number(value)); }
  JsonObject& flag(const std::string& name, bool value) { return raw(name, value ? "true" : "false"); }
  template <typename Number>
  JsonObject& number(const std::string& name, const std::optional<Number>& value) {
    return value ? number(name, static_cast<double>(*value)) : *this;
  }
  JsonObject& flag(const std::string& name, const std::optional<bool>& value) {
    return value ? flag(name, *value) : *this;
  }
  /// `json` is a value already.
  JsonObject& raw(const std::string& name, const std::string& json) {
    fields_ += (fields_.empty() ? "" : ",") + json_quoted(name) + ":" + json;
    return *this;
  }
  [[nodiscard]] std::string str() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

/// `json` are values already.
inline std::string json_list(const std::vector<std::string>& json) {
  std::string out = "[";
  for (const std::string& value : json) out += (out.size() > 1 ? "," : "") + value;
  return out + "]";
}

}  // namespace foretrain
