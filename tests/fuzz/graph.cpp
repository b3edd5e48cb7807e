// A task graph is refused, or reads back from what is written of it.
#include "tests/fuzz/harness.hpp"
#include "validate/replay/graph_text.hpp"
#include "validate/replay/issue.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const replay::Graph graph = replay::parse_graph(fuzz::text_of(data, size), "fuzz.graph");
    const std::string text = replay::to_text(graph);
    fuzz::require(replay::to_text(replay::parse_graph(text, "again.graph")) == text);
    try {
      (void)replay::plan_issue(graph);
    } catch (const std::invalid_argument&) {
      // Tasks that are launched together and do not follow one another.
    }
  } catch (const replay::GraphFileError&) {
    // Refused.
  }
  return 0;
}
