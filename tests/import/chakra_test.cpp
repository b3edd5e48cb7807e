// Traces of Chakra byte by byte. Their tasks: rows/chakra.txt.
#include "reports/import/chakra_trace.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value /= 128) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}

/// A field that is a number, and one that is a text or a message, as Protocol Buffers write them.
std::string number_field(std::uint64_t field, std::uint64_t value) { return varint(field * 8) + varint(value); }
std::string text_field(std::uint64_t field, const std::string& bytes) {
  return varint(field * 8 + 2) + varint(bytes.size()) + bytes;
}

/// Messages behind an empty one of metadata, each behind its length.
std::string wire(const std::vector<std::string>& messages) {
  std::string bytes(1, '\0');
  for (const std::string& message : messages) bytes += varint(message.size()) + message;
  return bytes;
}

/// The attribute "x" of a node whose value is this field.
std::string attribute_of(const std::string& value) {
  return read_chakra(wire({text_field(10, text_field(1, "x") + value)}), "file").front().attributes["x"];
}

/// Place and reason of a refused trace.
std::string refusal_of(const std::string& bytes) {
  try {
    read_chakra(bytes, "file");
  } catch (const ScenarioError& error) {
    return fmt::format("{} {}: {}", error.where().text(), error.key(), error.got());
  }
  return "read";
}

}  // namespace

TEST_CASE("fields of Chakra's messages are read by their kinds") {
  const std::string inputs = text_field(1, "no") + text_field(2, "[[2]]") + text_field(3, "['float']");
  const std::string message = number_field(1, 300) + text_field(2, "name") + number_field(3, 7) + number_field(4, 1) +
                              text_field(5, varint(2) + varint(1'000'000)) + number_field(6, 9) + number_field(7, 64) +
                              text_field(8, inputs) + text_field(9, "no");
  const std::vector<ChakraNode> nodes = read_chakra(wire({message, number_field(3, 8)}), "file");
  REQUIRE(nodes.size() == 2);
  const ChakraNode& node = nodes.front();
  CHECK(node.id == 300);
  CHECK(node.name == "name");
  CHECK(node.type == ChakraNode::Type::comm_coll);
  CHECK(node.control == std::vector<std::uint64_t>{1});
  CHECK(node.data == std::vector<std::uint64_t>{2, 1'000'000});
  CHECK(node.microseconds == 64);
  CHECK(node.input_shapes == "[[2]]");
  CHECK(node.input_types == "['float']");
  CHECK(node.attributes.empty());
  CHECK(nodes.back().type == ChakraNode::Type::invalid);  // the schema has no eighth type
}

TEST_CASE("values of Chakra's attributes are whole numbers and flags, all else is passed by") {
  for (const std::uint64_t field : {7U, 9U, 25U, 27U}) {
    CHECK(attribute_of(number_field(field, 300)) == "300");
  }
  CHECK(attribute_of(varint(3 * 8 + 1) + std::string(8, '\0')).empty());
  CHECK(attribute_of(varint(5 * 8 + 5) + std::string(4, '\0')).empty());
  CHECK(attribute_of(text_field(29, "words")).empty());
  CHECK(read_chakra(wire({text_field(10, text_field(1, "x"))}), "file").front().attributes.empty());
}

TEST_CASE("bytes that are no trace of Chakra are refused where they stand") {
  CHECK(refusal_of("") == "file : no nodes");
  CHECK(refusal_of(std::string(1, '\0')) == "file : no nodes");  // metadata alone
  // One byte of metadata's length, one of the message's, one of the field's tag: group ends are none of Chakra's.
  CHECK(refusal_of(wire({"\x0c"})) == "file byte 3: no field of a message begins here");
  CHECK(refusal_of(wire({std::string("\0\1", 2)})) == "file byte 4: a field with number 0");
  CHECK(refusal_of(wire({"\x08\x80"})) == "file byte 4: the file ends inside a number");
  CHECK(refusal_of(wire({text_field(4, "\x80")})) == "file byte 5: the file ends inside a number");
  CHECK(refusal_of(wire({"\x08" + std::string(10, '\x80') + "\x01"})) ==
        "file byte 13: a number of more than ten bytes");
  CHECK(refusal_of(wire({"\x12\x04"
                         "abc"})) == "file byte 4: 4 bytes are announced, fewer are left");
  CHECK(refusal_of(wire({"\x12\x03"
                         "abc"})) == "read");
  CHECK(refusal_of(wire({"\x08" + std::string(9, '\x80') + "\x01"})) == "read");  // ten bytes
  // Within an attribute and within inputs places are counted from the file's beginning, too.
  CHECK(refusal_of(wire({number_field(1, 1), text_field(10, "\x0c")})) ==
        "file byte 8: no field of a message begins here");
  CHECK(refusal_of(wire({number_field(1, 1), text_field(8, "\x0c")})) ==
        "file byte 8: no field of a message begins here");
}

TEST_CASE("JSON of Chakra has numbers as they are or as texts") {
  const auto one = [](const std::string& text) { return read_chakra(text, "file").front(); };
  const ChakraNode camel = one(
      R"( {"type": "COMM_SEND_NODE", "id": 12, "ctrlDeps": [1, "23"], "dataDeps": [4], "durationMicros": "56",
           "attr": [{"name": "a", "docString": "no", "int64Val": "78"}, {"name": "b", "boolVal": true},
                    {"name": "c", "floatList": {"values": [1]}}, 3]})");
  CHECK(camel.id == 12);
  CHECK(camel.type == ChakraNode::Type::comm_send);
  CHECK(camel.control == std::vector<std::uint64_t>{1, 23});
  CHECK(camel.data == std::vector<std::uint64_t>{4});
  CHECK(camel.microseconds == 56);
  CHECK(camel.attributes == std::map<std::string, std::string>{{"a", "78"}, {"b", "true"}});
  CHECK(camel.number("a") == 78);
  CHECK(camel.number("b") == 0);
  CHECK(camel.number("z") == 0);
  const ChakraNode odd = one(R"({"type": "NEW", "id": -1, "name": 7, "ctrlDeps": 1, "dataDeps": [4], "inputs": []})");
  CHECK(odd.type == ChakraNode::Type::invalid);
  CHECK(odd.id == 0);
  CHECK(odd.name.empty());
  CHECK(odd.control.empty());
  CHECK(odd.data == std::vector<std::uint64_t>{4});
  // Brackets and quotes in a text end nothing.
  const std::vector<ChakraNode> two =
      read_chakra(R"({"type": "COMP_NODE", "name": "a}\"{"}{"no": 1} {"type": "COMP_NODE", "name": "b"})", "file");
  REQUIRE(two.size() == 2);
  CHECK(two.front().name == "a}\"{");
  CHECK(two.back().name == "b");
}

TEST_CASE("JSON that is none is refused at its first wrong character, counted through all objects") {
  CHECK(refusal_of("{\"type\": \"COMP_NODE\"}\n{\"id\": x}") == "file:2:8 : this is no JSON");
  CHECK(refusal_of("{\"id\": 1,}") == "file:1:10 : this is no JSON");
  CHECK(refusal_of("{\"id\"") == "file:1:6 : this is no JSON");
}

TEST_CASE("a trace has at most 20,000 nodes") {
  std::string most;
  for (int i = 0; i < 20'000; ++i) most += R"({"type":""})";
  CHECK(refusal_of(most) == "read");
  CHECK(refusal_of(most + R"({"type":""})") == "file : more than 20,000 nodes");
}
