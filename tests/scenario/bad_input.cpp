#include "tests/scenario/bad_input.hpp"

#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

namespace foretrain {

namespace {

/// Takes the mark out of the text and says where it stood.
SourcePosition take_mark(std::string& text) {
  const std::size_t mark = text.find('^');
  REQUIRE(mark != std::string::npos);
  text.erase(mark, 1);
  SourcePosition where{"bad.yaml", 1, 1};
  for (std::size_t i = 0; i < mark; ++i) {
    where.line += text[i] == '\n' ? 1 : 0;
    where.column = text[i] == '\n' ? 1 : where.column + 1;
  }
  return where;
}

}  // namespace

Complaint complaint_about(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    load_scenario_text(text, "bad.yaml", overrides);
  } catch (const ScenarioError& error) {
    return {true, error.where(), error.key(), error.got(), error.expected(), error.what()};
  }
  return {};
}

const std::vector<std::string>& good_lines() {
  static const std::vector<std::string> lines = {
      "name: good",
      "cluster:",
      "  node: dgx-a100-80gb",
      "  nodes: 2",
      "  network: { nics_per_node: 8, nic_bandwidth: 200 Gbit/s, latency: 5 us }",
      "workload:",
      "  train:",
      "    model: { family: gpt, layers: 24, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 1024 }",
      "    global_batch: 64",
      "    micro_batch: 2",
      "    precision: bf16",
      "plan:",
      "  data: 4",
      "  tensor: 2",
      "  pipeline: 2",
      "  sync: { algorithm: ring, bucket: 25 MB }"};
  return lines;
}

std::string good_text(std::size_t replaced_line, std::string_view replacement) {
  std::string text;
  for (std::size_t i = 0; i < good_lines().size(); ++i) {
    text += i + 1 == replaced_line ? std::string(replacement) : good_lines()[i];
    text += '\n';
  }
  return text;
}

void check_complaint(std::string text, std::string_view key, std::string_view wrong, std::string_view right) {
  const SourcePosition expected = take_mark(text);
  INFO(text);
  const Complaint complaint = complaint_about(text);
  REQUIRE(complaint.thrown);
  INFO(complaint.text);
  CHECK(complaint.where.file == "bad.yaml");
  CHECK(complaint.where.line == expected.line);
  CHECK(complaint.where.column == expected.column);
  CHECK(complaint.key == key);
  CHECK(complaint.got.find(wrong) != std::string::npos);
  CHECK(complaint.expected.find(right) != std::string::npos);
}

void check_bad_lines(std::span<const BadLine> lines) {
  for (const BadLine& bad : lines) {
    check_complaint(good_text(bad.line, bad.replacement), bad.key, bad.wrong, bad.right);
  }
}

}  // namespace foretrain
