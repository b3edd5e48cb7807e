#include "validate/measure/json_object.hpp"

#include <charconv>
#include <cmath>
#include <stdexcept>

namespace foretrain {

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

std::string json_number(double value) {
  if (!std::isfinite(value)) throw std::invalid_argument("a measurement is not a finite number");
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return {text, end};
}

std::string json_list(const std::vector<std::string>& json) {
  std::string out = "[";
  for (const std::string& value : json) out += (out.size() > 1 ? "," : "") + value;
  return out + "]";
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

JsonObject& JsonObject::texts(const std::string& name, const std::vector<std::string>& values) {
  std::vector<std::string> quoted;
  for (const std::string& value : values) quoted.push_back(json_quoted(value));
  return raw(name, json_list(quoted));
}

JsonObject& JsonObject::texts(const std::string& name, const std::map<std::string, std::string>& values) {
  JsonObject object;
  for (const auto& [key, value] : values) object.text(key, value);
  return raw(name, object.str());
}

JsonObject& JsonObject::numbers(const std::string& name, const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(json_number(value));
  return raw(name, json_list(texts));
}

JsonObject& JsonObject::raw(const std::string& name, const std::string& json) {
  fields_ += (fields_.empty() ? "" : ",") + json_quoted(name) + ":" + json;
  return *this;
}

}  // namespace foretrain
