// Files of other tools, read into what this program takes: scenarios, node and fabric files, tables of cases. Whatever
// an importer writes has been read back by the scenarios' own readers, whose complaints name the place in the other
// tool's file.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// A file of another tool, and what the user says beside it.
struct ImportInput {
  std::string file;                    ///< as errors and comments name it
  std::string text;                    ///< its bytes, unpacked
  std::vector<std::string> overrides;  ///< "KEY=VALUE" of what is written, in place of what the file says
  std::string scenario;                ///< a prediction to compare with; empty: none (kineto alone)
  Fidelity fidelity = Fidelity::flows;
};

struct Importer {
  std::string_view word, reads, becomes;
  std::string (*read)(const ImportInput& input);
};

/// In the order of importers.def.
std::span<const Importer> importers();

/// The file's bytes, unpacked where they are gzip's. Throws ScenarioError naming a file that is missing, a directory,
/// too large, or broken.
std::string read_imported_file(const std::string& path);

/// Throws ScenarioError unless it is UTF-8 text of the length that people write: at most 4 MB.
void require_config_text(const ImportInput& input);

/// The file's name without folder and ending.
std::string file_stem(const ImportInput& input);

/// A configuration in JSON or YAML; `what` says what it should be. Throws ScenarioError for malformed text and for
/// anything but a mapping.
YamlNode parse_config(const ImportInput& input, const std::string& what);

/// Throws a JSON parser's error with its place in the file; `start`: where in the text parsing began.
[[noreturn]] void refuse_json(const nlohmann::json::exception& error, std::string_view text, const std::string& file,
                              const std::string& expected, std::size_t start = 0);

// Each throws ScenarioError, at a place of the file, for what is none of its kind or says something impossible.
#define IMPORTER(name, word, reads, becomes) std::string import_##name(const ImportInput& input);
#include "reports/import/importers.def"

}  // namespace foretrain
