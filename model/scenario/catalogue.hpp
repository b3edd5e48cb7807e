// The data that comes with the program: hardware, models, calibrations, runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// The folder `scenarios`: the environment variable FORETRAIN_SCENARIOS, else the first of <dir>/scenarios and
/// <dir>/share/foretrain/scenarios that exists, where <dir> is the folder of the program (of the
/// library, in a program of others) or one above it. Throws UsageError
/// when there is none.
std::filesystem::path data_directory();

struct CatalogueEntry {
  std::string name;
  std::filesystem::path file;
  std::string kind;  ///< "node", "gpu", "network", "transformer", …; of runs the topic's number ("R7"), or "run"
  std::string description;  ///< one line, may be empty
};
using keys::Catalogue;

/// Files of a section, sorted; names are the file names without ".yaml".
std::vector<CatalogueEntry> list_catalogue(Catalogue section);
inline std::vector<CatalogueEntry> list_scenarios() { return list_catalogue(Catalogue::run); }
inline std::vector<CatalogueEntry> list_models() { return list_catalogue(Catalogue::model); }
inline std::vector<CatalogueEntry> list_trainers() { return list_catalogue(Catalogue::trainer); }
/// Nodes, then GPUs, then fabrics.
std::vector<CatalogueEntry> list_hardware();
/// Their names; of one kind ("node") where it is given.
std::vector<std::string> catalogue_names(const std::vector<CatalogueEntry>& entries, std::string_view kind = {});

/// The file that a name or path stands for: NAME.yaml in the section's folder, or a path (a text with "/" or ending in
/// ".yaml" or ".json"), relative to the file that mentions it or else to the working directory. Runs are found by their
/// former names as well (scenarios/topics.yaml); letter case, hyphens, underscores and blanks make no other name, where
/// one alone is meant. Throws ScenarioError at the field, with near names.
std::filesystem::path catalogue_file(Catalogue section, const Field& name);

/// Likely names: the first that contain the name, else the nearest one, which may be a short name.
inline constexpr std::size_t most_near_names = 3;
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known,
                                    const std::vector<std::string>& short_names = {});

/// A path written in a file, relative to that file or else to the working directory. Throws ScenarioError at the field.
std::filesystem::path referenced_file(const Field& path);

/// From now on scenarios of this session, which strangers write, name the catalogue alone. A path that is not written
/// in one of its own files is refused, whether there is such a file or not.
void refuse_paths();

}  // namespace foretrain
