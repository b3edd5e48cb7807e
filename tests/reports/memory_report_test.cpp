// A GPU's memory as text and JSON, from a report made by hand.
#include "reports/studies/memory_report.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

MemoryReport two_moments() {
  MemoryReport report;
  report.scenario = "by hand";
  report.gpu = "small";
  MemoryTimeline::Moment forward{MemoryTimeline::Phase::forward, 0, 0, "block", {}};
  forward.parts[MemoryPart::weights] = Bytes(4e9);
  forward.parts[MemoryPart::activations] = Bytes(2e9);
  MemoryTimeline::Moment backward{MemoryTimeline::Phase::backward, 0, 0, "block", forward.parts};
  backward.parts[MemoryPart::temporaries] = Bytes(1e9);
  report.timeline.moments = {forward, backward};
  report.timeline.peak = 1;
  report.timeline.micro_batches = report.timeline.shown = 1;
  report.timeline.capacity = report.footprint.capacity = Bytes(10e9);
  report.footprint.weights = Bytes(4e9);
  report.footprint.activations = Bytes(2e9);
  report.footprint.workspace = Bytes(1e9);
  report.micro_batch = 1;
  report.largest_micro_batch = 2;
  return report;
}

}  // namespace

TEST_CASE("memory that does not fit says so, and what would help") {
  MemoryReport report = two_moments();
  report.footprint.capacity = report.timeline.capacity = Bytes(6e9);
  report.largest_micro_batch = 0;
  report.remedies = {"fits with recompute: full: 5.0 of 6.0 GB"};
  const std::string text = to_text(report);
  CHECK_THAT(text, Catch::Contains("DOES NOT FIT, 7.00 GB of 6.00 GB"));
  CHECK_THAT(text, Catch::Contains("No micro-batch fits (1 now)"));
  CHECK_THAT(text, Catch::Contains("Fits with recompute: full: 5.0 of 6.0 GB"));
}

TEST_CASE("memory as JSON has every moment in bytes") {
  const std::string json = to_json(two_moments());
  CHECK_THAT(json, Catch::Contains("\"total\": 7000000000"));
  CHECK_THAT(json, Catch::Contains("\"phase\": \"backward\""));
  CHECK_THAT(json, Catch::Contains("\"temporaries\": 1000000000"));
  CHECK_THAT(json, Catch::Contains("\"largest_micro_batch\": 2"));
}
