// Execution traces of MLCommons Chakra as values: et_def.proto (schema 0.0.4), and the JSON that chakra_jsonizer makes
// of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace foretrain {

struct ChakraNode {
  enum class Type { invalid, metadata, mem_load, mem_store, comp, comm_send, comm_recv, comm_coll };
  std::uint64_t id = 0;
  std::string name;
  Type type = Type::invalid;
  std::vector<std::uint64_t> control, data;  ///< nodes on which it depends
  std::uint64_t microseconds = 0;            ///< as it was recorded; 0: it was not
  std::string input_shapes;                  ///< "[[4096, 1024], [1024, 512]]"
  std::string input_types;                   ///< "['Tensor(float)', …]"
  std::map<std::string, std::string> attributes;

  /// A whole number; 0 where it is missing or is none.
  [[nodiscard]] std::uint64_t number(const std::string& attribute) const;
};

/// Nodes in the order of the file. Throws ScenarioError, with the byte or line, for what is no such trace.
std::vector<ChakraNode> read_chakra(const std::string& bytes, const std::string& file);

}  // namespace foretrain
