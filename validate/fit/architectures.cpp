#include "validate/fit/architectures.hpp"

#include "model/scenario/figures.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

OperationsPerClock read_operations(const MappingReader& keys, std::string_view key) {
  OperationsPerClock operations;
  const auto field = keys.find(key);
  if (!field) return operations;
  const MappingReader rates = field->mapping(keys::operations);
  for (const YamlEntry& entry : field->node().entries) {
    operations[entry.key] = rates[entry.key].number(Zero::refused);
  }
  return operations;
}

Architecture read_architecture(const Field& field) {
  const MappingReader keys = field.mapping(keys::architecture);
  return {keys["compute_capability"].number(Zero::refused),
          keys["architecture"].text(),
          read_operations(keys, "vector"),
          read_operations(keys, "tensor"),
          read_operations(keys, "geforce"),
          keys["memory_latency"].quantity<Seconds>(),
          keys["l2_bytes"].number(Zero::refused),
          read_source(keys["source"]).text};
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> table = [] {
    const Field file(hardware_table("architectures.yaml"), "");
    std::vector<Architecture> rows;
    for (const Field& row : file.mapping(keys::architectures_file)["architectures"].list()) {
      rows.push_back(read_architecture(row));
    }
    return rows;
  }();
  return table;
}

const Architecture& architecture_of(double compute_capability) {
  const Architecture* found = &architectures().front();
  for (const Architecture& row : architectures()) {
    if (row.compute_capability <= compute_capability + 1e-9) found = &row;
  }
  return *found;
}

}  // namespace foretrain
