// Traces of Chakra byte by byte and task by task.
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

/// What a node's attribute "x" is read as, where its value is this field.
std::string attribute_of(const std::string& value) {
  return read_chakra(wire({text_field(10, text_field(1, "x") + value)}), "file").front().attributes["x"];
}

/// Where and why a trace is refused.
std::string refusal_of(const std::string& bytes) {
  try {
    read_chakra(bytes, "file");
  } catch (const ScenarioError& error) {
    return fmt::format("{} {}: {}", error.where().text(), error.key(), error.got());
  }
  return "read";
}

/// The tasks of nodes in JSON, a line each.
std::string tasks_of(const std::string& nodes) {
  const std::string text = import_text("chakra", nodes);
  std::string lines = "\n";
  for (std::size_t at = text.find("- {"); at != std::string::npos; at = text.find("- {", at + 1)) {
    lines += text.substr(at + 2, text.find('\n', at) - at - 1);
  }
  return lines;
}

std::string product(int id, const char* name, const char* shapes, const char* attributes = "") {
  return fmt::format(
      R"({{"type": "COMP_NODE", "id": {}, "name": "{}", "inputs": {{"shapes": "{}", "types": "[]"}}, "attr": [{}],
           "durationMicros": 5}})",
      id, name, shapes, attributes);
}

std::string node_of(int id, const char* type, const std::vector<std::pair<const char*, std::uint64_t>>& attributes) {
  std::string list;
  for (const auto& [name, value] : attributes) {
    list += fmt::format(R"({}{{"name": "{}", "uint64Val": {}}})", list.empty() ? "" : ", ", name, value);
  }
  return fmt::format(R"({{"type": "{}", "id": {}, "name": "x", "attr": [{}]}})", type, id, list);
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

TEST_CASE("values of Chakra's attributes are numbers with and without signs, and texts") {
  const std::uint64_t minus_one = ~std::uint64_t{0};
  // 1.5 as eight bytes, 0x3FF8 above six that are zero, and as four.
  CHECK(attribute_of(varint(3 * 8 + 1) + std::string("\0\0\0\0\0\0\xf8\x3f", 8)) == "1.5");
  CHECK(attribute_of(varint(5 * 8 + 5) + std::string("\0\0\xc0\x3f", 4)) == "1.5");
  for (const std::uint64_t field : {7U, 9U, 25U}) CHECK(attribute_of(number_field(field, minus_one)) == "-1");
  for (const std::uint64_t field : {11U, 13U, 19U, 21U, 27U}) {
    CHECK(attribute_of(number_field(field, minus_one)) == "18446744073709551615");
  }
  // Zigzag: 0, -1, 1, -2, 2.
  for (const std::uint64_t field : {15U, 17U}) {
    CHECK(attribute_of(number_field(field, 0)) == "0");
    CHECK(attribute_of(number_field(field, 3)) == "-2");
    CHECK(attribute_of(number_field(field, 4)) == "2");
  }
  CHECK(attribute_of(number_field(23, 0xFFFF'FFFE)) == "-2");  // of 32 bits
  CHECK(attribute_of(text_field(29, "words")) == "words");
  CHECK(attribute_of(text_field(4, "list")).empty());
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

TEST_CASE("JSON of Chakra has numbers as they are or as texts, and names of two kinds") {
  const auto one = [](const std::string& text) { return read_chakra(text, "file").front(); };
  const ChakraNode camel = one(
      R"( {"type": "COMM_SEND_NODE", "id": 12, "ctrlDeps": [1, "23"], "dataDeps": [4], "durationMicros": "56",
           "attr": [{"name": "a", "docString": "no", "int64Val": "78"}, {"name": "b", "boolVal": true},
                    {"name": "c", "floatList": {"values": [1]}}, 3, {"name": "d", "doc_string": "no"}]})");
  CHECK(camel.id == 12);
  CHECK(camel.type == ChakraNode::Type::comm_send);
  CHECK(camel.control == std::vector<std::uint64_t>{1, 23});
  CHECK(camel.data == std::vector<std::uint64_t>{4});
  CHECK(camel.microseconds == 56);
  CHECK(camel.attributes == std::map<std::string, std::string>{{"a", "78"}, {"b", "true"}});
  CHECK(camel.number("a") == 78);
  CHECK(camel.number("b") == 0);
  CHECK(camel.number("z") == 0);
  const ChakraNode snake = one(
      R"({"type": "NEW", "id": -1, "name": 7, "ctrl_deps": 1, "data_deps": [4], "duration_micros": 56, "inputs": [],
          "attrs": [{"name": "a", "int64_val": 78}]})");
  CHECK(snake.type == ChakraNode::Type::invalid);
  CHECK(snake.id == 0);
  CHECK(snake.name.empty());
  CHECK(snake.data == std::vector<std::uint64_t>{4});
  CHECK(snake.microseconds == 56);
  CHECK(snake.number("a") == 78);
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

TEST_CASE("products of a GPU are told by the last two of their operands, where these fit") {
  CHECK(tasks_of(product(1, "aten::mm", "[[2, 3], [3, 4]]") + product(2, "MatMul", "[[2, 3], [3, 4]]") +
                 product(3, "bmm", "[[7, 2, 3], [7, 3, 4]]") + product(4, "addmm", "[[4], [5, 5], [2, 3], [3, 1]]") +
                 product(5, "gelu", "[[2, 3], [3, 4]]") + product(6, "mm", "[[2, 3], [4, 3]]") +
                 product(7, "mm", "[[2, 3], [1, 3, 4]]") + product(8, "mm", "[[2, 3]]") +
                 product(9, "mm", "[[2, 0], [0, 4]]") + product(10, "mm", "[[2, x3], [3, 4]]") +
                 product(11, "mm", "2, 3], [3, 4]") + product(12, "mm", "[[2, 3], [3, 4") +
                 product(13, "mm", "[[2, 3], [3, 4], [1, 2, 3, 4]]")) == R"(
{ id: n1, on: "gpu0:stream1", run: { kind: matmul, m: 2, n: 4, k: 3, precision: fp32 } }  # aten::mm: by its operands' shapes
{ id: n2, on: "gpu0:stream1", run: { kind: matmul, m: 2, n: 4, k: 3, precision: fp32 } }  # MatMul: by its operands' shapes
{ id: n3, on: "gpu0:stream1", run: { kind: matmul, batch: 7, m: 2, n: 4, k: 3, precision: fp32 } }  # bmm: by its operands' shapes
{ id: n4, on: "gpu0:stream1", run: { kind: matmul, m: 2, n: 1, k: 3, precision: fp32 } }  # addmm: by its operands' shapes
{ id: n5, on: "gpu0:stream1", run: { sleep: 5 us } }  # gelu: as long as it was recorded
{ id: n6, on: "gpu0:stream1", run: { sleep: 5 us } }  # mm: as long as it was recorded
{ id: n7, on: "gpu0:stream1", run: { sleep: 5 us } }  # mm: as long as it was recorded
{ id: n8, on: "gpu0:stream1", run: { sleep: 5 us } }  # mm: as long as it was recorded
{ id: n9, on: "gpu0:stream1", run: { sleep: 5 us } }  # mm: as long as it was recorded
{ id: n10, on: "gpu0:stream1", run: { sleep: 5 us } }  # mm: as long as it was recorded
{ id: n11, on: "gpu0:stream1", run: { sleep: 5 us } }  # mm: as long as it was recorded
{ id: n12, on: "gpu0:stream1", run: { sleep: 5 us } }  # mm: as long as it was recorded
{ id: n13, on: "gpu0:stream1", run: { kind: matmul, m: 2, n: 4, k: 3, precision: fp32 } }  # mm: by its operands' shapes
)");
}

TEST_CASE("a processor's operators are as long as they were, operations without a time are by their number") {
  const auto on_cpu = [](int id, const char* value) {
    const std::string attribute = fmt::format(R"({{"name": "is_cpu_op", "stringVal": "{}"}})", value);
    return product(id, "mm", "[[2, 3], [3, 4]]", attribute.c_str());
  };
  CHECK(tasks_of(on_cpu(1, "true") + on_cpu(2, "false") + on_cpu(3, "0")) == R"(
{ id: n1, on: cpu, run: { sleep: 5 us } }  # mm: as long as it was recorded
{ id: n2, on: "gpu0:stream1", run: { kind: matmul, m: 2, n: 4, k: 3, precision: fp32 } }  # mm: by its operands' shapes
{ id: n3, on: "gpu0:stream1", run: { kind: matmul, m: 2, n: 4, k: 3, precision: fp32 } }  # mm: by its operands' shapes
)");
  const std::uint64_t many = 10'000'000'000'000'000'000U;
  CHECK(tasks_of(node_of(1, "COMP_NODE", {{"num_ops", 10}, {"tensor_size", 16}}) +
                 node_of(2, "COMP_NODE", {{"num_ops", 10}, {"tensor_size", 3}}) +
                 node_of(3, "COMP_NODE", {{"tensor_size", 16}}) +
                 node_of(4, "COMP_NODE", {{"num_ops", many}, {"tensor_size", many}}) +
                 node_of(5, "COMP_NODE", {{"num_ops", many}}) +
                 R"({"type": "COMP_NODE", "id": 6, "name": "x", "durationMicros": 3,
                     "attr": [{"name": "num_ops", "uint64Val": 10}]})" +
                 R"({"type": "COMP_NODE", "id": 7, "name": "x", "durationMicros": 10000000000000})" +
                 R"({"type": "COMP_NODE", "id": 8, "name": "x",
                     "attr": [{"name": "num_ops", "uint64Val": 10}, {"name": "is_cpu_op", "boolVal": true}]})") == R"(
{ id: n1, on: "gpu0:stream1", run: { kind: elementwise, elements: 4, flops_per_element: 2.5 } }  # x: num_ops operations on tensor_size bytes
{ id: n2, on: "gpu0:stream1", run: { kind: elementwise, elements: 1, flops_per_element: 10 } }  # x: num_ops operations on tensor_size bytes
{ id: n3, on: "gpu0:stream1", run: { sleep: 0 us } }  # x: as long as it was recorded
{ id: n4, on: "gpu0:stream1", run: { kind: elementwise, elements: 1000000000000, flops_per_element: 10000000 } }  # x: num_ops operations on tensor_size bytes
{ id: n5, on: "gpu0:stream1", run: { kind: elementwise, elements: 1, flops_per_element: 1e+12 } }  # x: num_ops operations on tensor_size bytes
{ id: n6, on: "gpu0:stream1", run: { sleep: 3 us } }  # x: as long as it was recorded
{ id: n7, on: "gpu0:stream1", run: { sleep: 1000000000000 us } }  # x: as long as it was recorded
{ id: n8, on: cpu, run: { sleep: 0 us } }  # x: as long as it was recorded
)");
}

TEST_CASE("what moves is a copy between its ends, of a collective what a rank sends of a ring of eight") {
  const auto collective = [](int id, std::uint64_t kind) {
    return node_of(id, "COMM_COLL_NODE", {{"comm_type", kind}, {"comm_size", 800}});
  };
  const std::string of_ring = "  # x: a collective: what a rank sends of a ring of 8, assumed\n";
  const auto copied = [&](int id, int bytes) {
    return fmt::format("{{ id: n{}, on: \"gpu0:p2p\", run: {{ kind: copy, from: gpu0, to: gpu1, size: {} B }} }}{}", id,
                       bytes, of_ring);
  };
  // Of 800 bytes a ring of eight sends seven eighths, and twice that for an all-reduce; reductions and broadcasts all.
  CHECK(tasks_of(collective(1, 0) + collective(2, 1) + collective(3, 2) + collective(4, 5) + collective(5, 9)) ==
        "\n" + copied(1, 1400) + copied(2, 800) + copied(3, 700) + copied(4, 800) + copied(5, 0));
  CHECK(tasks_of(node_of(1, "MEM_LOAD_NODE", {{"tensor_size", 8}, {"comm_size", 9}}) +
                 node_of(2, "MEM_STORE_NODE", {{"tensor_size", 8}, {"comm_size", 9}}) +
                 node_of(3, "COMM_SEND_NODE", {{"tensor_size", 8}, {"comm_size", 9}, {"comm_type", 9}}) +
                 node_of(4, "COMM_RECV_NODE", {{"tensor_size", 8}, {"comm_size", 10'000'000'000'000'000}})) == R"(
{ id: n1, on: "gpu0:h2d", run: { kind: copy, from: cpu, to: gpu0, size: 8 B } }  # x: tensor_size
{ id: n2, on: "gpu0:d2h", run: { kind: copy, from: gpu0, to: cpu, size: 8 B } }  # x: tensor_size
{ id: n3, on: "gpu0:p2p", run: { kind: copy, from: gpu0, to: gpu1, size: 9 B } }  # x: comm_size
{ id: n4, on: "gpu1:p2p", run: { kind: copy, from: gpu1, to: gpu0, size: 1000000000000000 B } }  # x: comm_size
)");
}

TEST_CASE("tasks stand behind those that they wait for, else as the trace has them") {
  const auto node = [](int id, const char* after) {
    return fmt::format(R"({{"type": "COMP_NODE", "id": {}, "name": "x", "dataDeps": [{}]}})", id, after);
  };
  const auto task = [](int id, const std::string& after) {
    return fmt::format(
        "{{ id: n{}, on: \"gpu0:stream1\", run: {{ sleep: 0 us }}{} }}  # x: as long as it was recorded\n", id, after);
  };
  const std::string nodes = node(4, "7, 2, 2, 9") + node(3, "") + node(7, "3") + node(2, "9");
  CHECK(tasks_of(nodes) == "\n" + task(3, "") + task(7, ", after: [n3]") + task(2, "") + task(4, ", after: [n7, n2]"));
  CHECK_THAT(import_text("chakra", nodes),
             Catch::Contains("2 dependencies are on nodes that the trace does not have."));
  CHECK_THAT(import_text("chakra", node(3, "")), !Catch::Contains("that the trace does not have"));
  CHECK_THROWS_WITH(import_text("chakra", node(1, "") + node(2, "") + node(1, "")),
                    Catch::Contains("node 1: a second node of this number"));
  CHECK_THROWS_WITH(import_text("chakra", node(1, "") + node(5, "6") + node(6, "5")),
                    Catch::Contains("node 5: it waits for itself"));
}

TEST_CASE("where control and data dependencies make a circle, data alone are followed, and predictions say so") {
  const auto waits = [](int id, const char* control, const char* data) {
    return fmt::format(R"({{"type": "COMP_NODE", "id": {}, "name": "x", "ctrlDeps": [{}], "dataDeps": [{}],)"
                       R"( "durationMicros": 5}})",
                       id, control, data);
  };
  const std::string text = import_text("chakra", waits(1, "2", "") + waits(2, "", "1"));
  CHECK_THAT(text, Catch::Contains("id: n2") && Catch::Contains("after: [n1]") && !Catch::Contains("after: [n2]"));
  CHECK_THAT(text, Catch::Contains("  workload.tasks: ") && Catch::Contains("data_deps alone are followed"));
  CHECK_THROWS_WITH(import_text("chakra", waits(1, "", "2") + waits(2, "", "1")),
                    Catch::Contains("node 1: it waits for itself"));
}

TEST_CASE("a file with all nodes in workload_graph is read as the feeder of Chakra reads it") {
  // NodeType 4 computes, 7 is a collective; comm_type 0 an all-reduce of 1,000 bytes, of which a rank of eight sends
  // 2 · 7/8.
  const std::string text = import_text("chakra", R"({"schema": "x", "workload_graph": [
    {"Id": 0, "Name": "a", "NodeType": 4, "is_cpu_op": false, "runtime": 7, "data_deps": []},
    {"Id": 1, "Name": "b", "NodeType": 7, "comm_type": 0, "comm_size": 1000, "data_deps": [0]}]})");
  CHECK_THAT(text, Catch::Contains("sleep: 7 us") && Catch::Contains("size: 1750 B") && Catch::Contains("after: [n0]"));
}
