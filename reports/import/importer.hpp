// Files of other tools, read into what this program takes: scenarios, node and fabric files, tables of cases. Whatever
// an importer writes has been read back by the scenarios' own readers, whose complaints name the place in the other
// tool's file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.hpp"

namespace foretrain {

/// A file of another tool, and what the user says beside it.
struct ImportInput {
  std::string file;                    ///< as errors and comments name it
  std::string text;                    ///< its bytes, unpacked
  std::vector<std::string> overrides;  ///< "KEY=VALUE" of what is written, in place of what the file says
  std::string scenario;                ///< a prediction to compare with; empty: none (kineto alone)
  Fidelity fidelity = Fidelity::flows;
};

/// A kind of file.
struct Importer {
  std::string_view word, reads, becomes;
  std::string (*read)(const ImportInput& input);
};

/// In the order of importers.def.
std::span<const Importer> importers();

/// The file's bytes, unpacked where they are gzip's. Throws ScenarioError naming a file that is missing, a directory,
/// too large, or broken.
std::string read_imported_file(const std::string& path);

// Each throws ScenarioError, at a place of the file, for what is none of its kind or says something impossible.
#define IMPORTER(name, word, reads, becomes) std::string import_##name(const ImportInput& input);
#include "reports/import/importers.def"

}  // namespace foretrain
