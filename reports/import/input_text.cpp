#include "reports/import/input_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "model/base/files.hpp"
#include "reports/import/draft.hpp"

namespace foretrain {

void require_config_text(const ImportInput& input) {
  constexpr std::size_t longest = 4'000'000;
  if (input.text.size() > longest) {
    throw ScenarioError({input.file, 0, 0}, "", fmt::format("{} bytes", input.text.size()), "at most 4 MB of text");
  }
  require_text(input.text, input.file);
}

std::string file_stem(const ImportInput& input) { return std::filesystem::path(input.file).stem().string(); }

YamlNode parse_config(const ImportInput& input, const std::string& what) {
  require_config_text(input);
  std::string text = input.text;
  std::ranges::replace(text, '\t', ' ');  // JSON's indentation, which YAML refuses; strings hold none
  YamlNode document = parse_yaml(text, input.file);
  if (!document.is_mapping()) throw ScenarioError(document.where, "", "no mapping", what);
  return document;
}

void refuse_json(const nlohmann::json::exception& error, std::string_view text, const std::string& file,
                 const std::string& expected, std::size_t start) {
  const auto* broken = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  if (broken != nullptr && broken->byte > 0) start = std::min(start + broken->byte - 1, text.size());
  throw ScenarioError(position_in(text, start, file), "",
                      broken != nullptr ? "this is no JSON" : "a number that no double holds", expected);
}

}  // namespace foretrain
