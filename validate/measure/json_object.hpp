// JSON as it is written here: numbers and texts, and objects whose fields are written one after the other.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// A text in quotation marks, as JSON wants it.
std::string json_quoted(const std::string& text);
/// The shortest text that reads back as the same number. Throws std::invalid_argument for what is not finite.
std::string json_number(double value);
/// `json` are values already.
std::string json_list(const std::vector<std::string>& json);
/// The text of the first field of this name in a line that was written here; "" where there is none.
std::string json_text_field(const std::string& line, const std::string& name);

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
  JsonObject& texts(const std::string& name, const std::vector<std::string>& values);
  JsonObject& texts(const std::string& name, const std::map<std::string, std::string>& values);
  JsonObject& numbers(const std::string& name, const std::vector<double>& values);
  /// `json` is a value already.
  JsonObject& raw(const std::string& name, const std::string& json);
  [[nodiscard]] std::string str() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

}  // namespace foretrain
