#include "model/scenario/load/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "model/scenario/catalogue.hpp"
#include "model/scenario/plan/plan_reader.hpp"

namespace foretrain {

namespace {

/// The mapping's value for a key, made where there is none.
YamlNode& value_at(YamlNode& mapping, const char* key, const SourcePosition& where) {
  if (mapping.is_null()) mapping = yaml_mapping(where);
  if (YamlEntry* known = mapping.find(key)) return known->value;
  return mapping.entries.emplace_back(YamlEntry{key, where, YamlNode{}}).value;
}

Scenario read_job(const MappingReader& keys, const YamlNode& cluster_document) {
  const Field scenario = keys["scenario"], nodes = keys["nodes"];
  const std::filesystem::path file = catalogue_file(CatalogueSection::run, scenario);
  YamlNode document = cached_yaml_file(file.string());
  for (const char* key : {"jobs", "background"}) {
    if (document.find(key) != nullptr) {
      scenario.fail(fmt::format("a job that brings along {} of its own", key), "all jobs and traffic in one scenario");
    }
  }
  const YamlEntry* workload = document.find("workload");
  scenario.fail_if(workload == nullptr || workload->value.find("train") == nullptr, "a job that trains nothing",
                   "a scenario with workload: { train: … }");
  value_at(document, "cluster", nodes.where()) = cluster_document;
  value_at(value_at(document, "plan", nodes.where()), "placement", nodes.where()) = nodes.node();
  return read_scenario(document, file.stem().string());
}

}  // namespace

std::vector<Scenario> read_jobs(const Field& field, const YamlNode& cluster_document, const Cluster& cluster) {
  std::vector<Scenario> jobs;
  std::vector<int> taken;
  for (const Field& entry : field.list()) {
    const MappingReader keys = entry.mapping(keys::job);
    for (const Field& nodes : keys["nodes"].list_or_one()) read_nodes(nodes, cluster, taken);
    jobs.push_back(read_job(keys, cluster_document));
  }
  if (jobs.empty()) field.fail("no jobs", "[ { scenario: other.yaml, nodes: 4..7 } ], or leave the key out");
  return jobs;
}

}  // namespace foretrain
