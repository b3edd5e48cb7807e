#include "reports/serve/answer.hpp"

#include <nlohmann/json.hpp>

namespace foretrain {

namespace {

using nlohmann::ordered_json;

/// Whatever bytes the complaint quotes.
std::string text_of(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

HttpAnswer complaint(int status, const std::string& error, const std::string& remedy) {
  return {status, text_of({{"error", error}, {"remedy", remedy}})};
}

HttpAnswer complaint(const ScenarioError& error) {
  ordered_json json = {{"error", error.key().empty() ? error.got() : error.key() + ": " + error.got()}};
  const SourcePosition& where = error.where();
  if (!where.file.empty()) json["file"] = where.file;
  if (where.line > 0) json.update({{"line", where.line}, {"column", where.column}});
  if (!error.key().empty()) json["key"] = error.key();
  json["remedy"] = error.expected();
  return {400, text_of(json)};
}

HttpAnswer complaint(int status, const std::string& text) {
  const std::size_t end = text.find("; ");
  return complaint(status, text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 2));
}

}  // namespace foretrain
