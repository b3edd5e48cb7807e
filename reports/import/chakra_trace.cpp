#include "reports/import/chakra_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <sstream>

#include "reports/import/draft.hpp"
#include "reports/import/importer.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

constexpr std::size_t most_nodes = 20'000;  ///< `workload.tasks` compares every name with every other

void require_few(std::size_t nodes, const std::string& file) {
  if (nodes <= most_nodes) return;
  throw ScenarioError({file, 0, 0}, "", "more than 20,000 nodes", "a trace of one step or of a part of it");
}

/// Protocol Buffers' wire format (protobuf.dev, "Encoding"): tags, variable-length integers, pieces with a length.
class WireReader {
 public:
  struct Field {
    std::uint32_t number = 0;
    std::uint64_t value = 0;  ///< of a whole number
    std::string_view bytes;   ///< of a text, a message or a fraction
    std::size_t at = 0;       ///< their start in the file
    bool has_bytes = false;
  };

  WireReader(std::string_view bytes, std::size_t at, const std::string& file) : bytes_(bytes), at_(at), file_(file) {}

  [[nodiscard]] bool done() const { return place_ == bytes_.size(); }

  Field next() {
    const std::uint64_t tag = varint();
    Field field{static_cast<std::uint32_t>(tag >> 3U), 0, {}, 0, false};
    switch (tag & 7U) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.bytes = piece(8);
        break;
      case 2:
        field.bytes = piece(varint());
        break;
      case 5:
        field.bytes = piece(4);
        break;
      default:
        fail("no field of a message begins here");
    }
    field.has_bytes = (tag & 7U) != 0;
    field.at = offset() - field.bytes.size();
    if (field.number == 0) fail("a field with number 0");
    return field;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (done()) fail("the file ends inside a number");
      const auto byte = static_cast<std::uint8_t>(bytes_[place_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    fail("a number of more than ten bytes");
  }

  std::string_view piece(std::uint64_t length) {
    if (length > bytes_.size() - place_) fail(fmt::format("{} bytes are announced, fewer are left", length));
    const std::string_view result = bytes_.substr(place_, static_cast<std::size_t>(length));
    place_ += result.size();
    return result;
  }

  [[nodiscard]] std::size_t offset() const { return at_ + place_; }

  [[noreturn]] void fail(const std::string& got) const {
    throw ScenarioError({file_, 0, 0}, fmt::format("byte {}", at_ + place_), got,
                        "an execution trace of Chakra: messages, each behind its length");
  }

 private:
  std::string_view bytes_;
  std::size_t at_;  ///< of the first byte in the file
  std::size_t place_ = 0;
  const std::string& file_;
};

/// `repeated uint64`, packed or one by one.
void add_numbers_of(const WireReader::Field& field, const std::string& file, std::vector<std::uint64_t>& numbers) {
  if (!field.has_bytes) {
    numbers.push_back(field.value);
    return;
  }
  WireReader packed(field.bytes, field.at, file);
  while (!packed.done()) numbers.push_back(packed.varint());
}

void add_attribute(const WireReader::Field& attribute, const std::string& file, ChakraNode& node) {
  WireReader reader(attribute.bytes, attribute.at, file);
  std::string name;
  std::optional<std::string> value;
  while (!reader.done()) {
    const WireReader::Field field = reader.next();
    if (field.number == 1) name = std::string(field.bytes);
    // Reads only whole numbers and flags of `oneof value`.
    if (field.number > 1 && !field.has_bytes) value = std::to_string(field.value);
  }
  if (value) node.attributes[name] = *value;
}

void add_inputs(const WireReader::Field& inputs, const std::string& file, ChakraNode& node) {
  WireReader reader(inputs.bytes, inputs.at, file);
  while (!reader.done()) {
    const WireReader::Field field = reader.next();
    if (field.number == 2) node.input_shapes = std::string(field.bytes);
    if (field.number == 3) node.input_types = std::string(field.bytes);
  }
}

ChakraNode read_wire_node(WireReader reader, const std::string& file) {
  ChakraNode node;
  while (!reader.done()) {
    const WireReader::Field field = reader.next();
    if (field.number == 1) node.id = field.value;
    if (field.number == 2) node.name = std::string(field.bytes);
    if (field.number == 3 && field.value <= 7) node.type = static_cast<ChakraNode::Type>(field.value);
    if (field.number == 4 || field.number == 5)
      add_numbers_of(field, file, field.number == 4 ? node.control : node.data);
    if (field.number == 7) node.microseconds = field.value;
    if (field.number == 8) add_inputs(field, file, node);
    if (field.number == 10) add_attribute(field, file, node);
  }
  return node;
}

/// The trace's metadata, then its nodes.
std::vector<ChakraNode> read_wire(const std::string& bytes, const std::string& file) {
  WireReader reader(bytes, 0, file);
  std::vector<ChakraNode> nodes;
  for (bool metadata = true; !reader.done(); metadata = false) {
    const std::uint64_t length = reader.varint();
    const std::size_t start = reader.offset();
    const WireReader message(reader.piece(length), start, file);
    if (!metadata) nodes.push_back(read_wire_node(message, file));
    require_few(nodes.size(), file);
  }
  return nodes;
}

/// protobuf's JSON writes numbers of 64 bits as strings.
std::uint64_t number_in(const json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (!value.is_string()) return 0;
  const auto& text = value.get_ref<const std::string&>();
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Null where there is none.
const json& member(const json& object, const char* key) {
  static const json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

ChakraNode::Type type_in(const json& object) {
  static constexpr std::array<std::string_view, 8> words = {"INVALID_NODE",   "METADATA_NODE", "MEM_LOAD_NODE",
                                                            "MEM_STORE_NODE", "COMP_NODE",     "COMM_SEND_NODE",
                                                            "COMM_RECV_NODE", "COMM_COLL_NODE"};
  const auto found = std::ranges::find(words, text_in(object, "type"));
  return found == words.end() ? ChakraNode::Type::invalid : static_cast<ChakraNode::Type>(found - words.begin());
}

void add_dependencies(const json& list, std::vector<std::uint64_t>& ids) {
  if (!list.is_array()) return;
  for (const json& dependency : list) ids.push_back(number_in(dependency));
}

ChakraNode read_json_node(const json& object) {
  ChakraNode node;
  node.id = number_in(member(object, "id"));
  node.name = text_in(object, "name");
  node.type = type_in(object);
  add_dependencies(member(object, "ctrlDeps"), node.control);
  add_dependencies(member(object, "dataDeps"), node.data);
  node.microseconds = number_in(member(object, "durationMicros"));
  const json& inputs = member(object, "inputs");
  node.input_shapes = text_in(inputs, "shapes");
  node.input_types = text_in(inputs, "types");
  for (const json& attribute : member(object, "attr")) {
    if (!attribute.is_object()) continue;
    for (const auto& [key, value] : attribute.items()) {
      const bool names = key == "name" || key == "docString";
      if (names || value.is_structured()) continue;
      node.attributes[text_in(attribute, "name")] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  return node;
}

/// Objects one behind the other, as chakra_jsonizer writes them: metadata, then nodes.
std::vector<ChakraNode> read_json(const std::string& text, const std::string& file) {
  constexpr std::streamsize all = std::numeric_limits<std::streamsize>::max();
  std::vector<ChakraNode> nodes;
  std::istringstream in(text);
  json object;
  for (in.ignore(all, '{'); !in.eof(); in.ignore(all, '{')) {
    in.unget();
    const auto start = static_cast<std::size_t>(in.tellg());
    try {
      in >> object;
    } catch (const json::exception& error) {
      refuse_json(error, text, file, "nodes as chakra_jsonizer writes them", start);
    }
    if (object.contains("nodes")) {
      throw ScenarioError(position_in(text, start, file), "nodes", "an execution trace of PyTorch itself",
                          "what chakra_converter makes of it");
    }
    if (object.contains("type")) nodes.push_back(read_json_node(object));
    require_few(nodes.size(), file);
  }
  return nodes;
}

}  // namespace

std::uint64_t ChakraNode::number(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  std::uint64_t value = 0;
  if (found != attributes.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

std::vector<ChakraNode> read_chakra(const std::string& bytes, const std::string& file) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && bytes[first] == '{';
  std::vector<ChakraNode> nodes = is_json ? read_json(bytes, file) : read_wire(bytes, file);
  if (nodes.empty()) {
    throw ScenarioError({file, 0, 0}, "", "no nodes", "an execution trace of MLCommons Chakra (schema 0.0.4)");
  }
  return nodes;
}

}  // namespace foretrain
